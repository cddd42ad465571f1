// Timers: those of a business by name, with their schedules, states and next occurrences.

import { businessBox } from "../parts/business_box.js";
import { el, fill } from "../parts/elements.js";
import { choice, form, text } from "../parts/form.js";
import { instant } from "../parts/instants.js";
import { Live } from "../parts/live.js";
import { repeatedly } from "../parts/refresh.js";
import { go, link } from "../parts/router.js";
import { schedule } from "../parts/schedule.js";
import { call } from "../parts/service.js";
import { empty } from "../parts/states.js";
import { badge, pager, table } from "../parts/table.js";

const EVERY_MS = 5000;
const PAGE = 25;
const STATES = [["", "any"], "enabled", "disabled", "ended"];

export async function timersPage({ place, query, signal }) {
  const { biz_type, name_prefix, state, cursor } = query;
  const list = biz_type
    ? new Live(timersOf({ biz_type, name_prefix, state, cursor, limit: PAGE }), (answer) => shown(answer, query))
    : new Live(businesses, suggested);
  fill(
    place,
    el("div", { class: "head" }, el("h1", {}, "Timers"), el("a", { class: "button primary", href: link(["timers", "new"], { biz_type }) }, "New timer")),
    filters(query, signal),
    list.place,
  );
  await repeatedly(EVERY_MS, signal, () => list.refresh(signal));
}

function filters({ biz_type = "", name_prefix = "", state = "" }, signal) {
  const fields = el(
    "div",
    { class: "filters" },
    businessBox(biz_type, signal),
    text("name_prefix", "Name begins with", name_prefix),
    choice("state", "State", STATES, state),
  );
  return form(fields, "Show", (values) => go(["timers"], values), { "aria-label": "Which timers" });
}

function timersOf(query) {
  return async (signal) => (await call("GET", ["timers"], { query, signal })).members;
}

async function businesses(signal) {
  return (await call("GET", ["businesses"], { signal })).members;
}

function suggested({ businesses }) {
  if (businesses.length === 0) return empty("Timers are listed by business. Name one.");
  const names = businesses.map(({ biz_type }) => el("li", { "data-key": biz_type }, el("a", { href: link(["timers"], { biz_type }) }, biz_type)));
  return [el("p", {}, "Timers are listed by business. Name one, or take one of those that have settings:"), el("ul", {}, names)];
}

function shown({ timers, cursor }, query) {
  const others = (cursor) => link(["timers"], { ...query, cursor });
  const isAll = timers.length === 0 && !cursor && !query.cursor;
  if (isAll) return nothing(query);
  const list = timers.length === 0 ? empty("No timer on this page.") : table("Timers", COLUMNS, timers, { key: ({ timer_id }) => timer_id });
  return [list, pager(query.cursor, cursor, others)];
}

function nothing({ biz_type, name_prefix, state }) {
  if (name_prefix || state) return empty(`No timer of ${biz_type} is such.`);
  return empty(`${biz_type} has no timers.`, el("p", {}, el("a", { href: link(["timers", "new"], { biz_type }) }, "Make one")));
}

const COLUMNS = [
  ["Name", ({ timer_id, name }) => el("a", { href: link(["timers", timer_id]) }, name)],
  ["Schedule", schedule],
  ["State", ({ state }) => badge(state)],
  ["Next", ({ next_at }) => instant(next_at)],
];
