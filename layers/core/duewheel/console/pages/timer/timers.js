// Timers: those of a business by name, with their schedules, states and next occurrences.

import { businessField } from "../../parts/business_field.js";
import { el, fill } from "../../parts/elements.js";
import { folded } from "../../parts/fold.js";
import { choice, form, text } from "../../parts/form.js";
import { instant } from "../../parts/instants.js";
import { labelField, labelLinks, labelTexts } from "../../parts/labels.js";
import { go, link } from "../../parts/router.js";
import { schedule } from "../../parts/schedule.js";
import { section } from "../../parts/section.js";
import { call } from "../../parts/service.js";
import { empty } from "../../parts/states.js";
import { badge, lookedAt, pager, table } from "../../parts/table.js";

const EVERY_MS = 5000;
const PAGE = 25;
const STATES = [["", "any"], "enabled", "disabled", "ended"];

export async function timersPage({ place, query, signal }) {
  const { biz_type } = query;
  const list = section(null, EVERY_MS, signal, () => timers(query, signal));
  fill(
    place,
    el("div", { class: "head" }, el("h1", {}, "Timers"), el("a", { class: "button primary", href: link(["timers", "new"], { biz_type }) }, "New timer")),
    folded("Filter", filters(query, signal)),
    list.whole,
  );
  await list.run();
}

function filters({ biz_type = "", name_prefix = "", state = "", label = "" }, signal) {
  const fields = el(
    "div",
    { class: "filters" },
    businessField(biz_type, signal),
    text("name_prefix", "Name begins with", name_prefix),
    choice("state", "State", STATES, state),
    labelField("label", "Labels", labelTexts(label), "name:value, one a line: all must match"),
  );
  return form(fields, "Show", (values) => go(["timers"], values), { "aria-label": "Which timers" });
}

async function timers(query, signal) {
  const { biz_type, name_prefix, state, label, cursor: here } = query;
  const asked = { biz_type, name_prefix, state, label: labelTexts(label), cursor: here, limit: PAGE };
  const { timers, cursor, looked_at } = (await call("GET", ["timers"], { query: asked, signal })).members;
  if (timers.length === 0 && !cursor && !here) return nothing(query);
  const list = timers.length === 0 ? empty("No timer on this page.") : table("Timers", columns(timers, query), timers, { key: ({ timer_id }) => timer_id });
  return [list, cursor && lookedAt(looked_at, "timers"), pager(here, cursor, (cursor) => link(["timers"], { ...query, cursor }))];
}

function nothing({ biz_type, name_prefix, state, label }) {
  if (name_prefix || state || label) return empty(`No timer${biz_type ? ` of ${biz_type}` : ""} is such.`);
  if (!biz_type) return empty("There are no timers.");
  return empty(`${biz_type} has no timers.`, el("p", {}, el("a", { href: link(["timers", "new"], { biz_type }) }, "Make one")));
}

function columns(timers, query) {
  const ofBusiness = ["Business", ({ biz_type }) => el("a", { href: link(["timers"], { ...query, biz_type, cursor: null }) }, biz_type)];
  const ofLabels = ["Labels", ({ labels }) => labelLinks(labels, ["timers"], query)];
  const some = timers.some(({ labels }) => Object.keys(labels).length > 0);
  return [...(query.biz_type ? [] : [ofBusiness]), ...COLUMNS, ...(some ? [ofLabels] : [])];
}

const COLUMNS = [
  ["Name", ({ timer_id, name }) => el("a", { href: link(["timers", timer_id]) }, name), "name"],
  ["Schedule", schedule],
  ["State", ({ state, disabled_reason }) => [badge(state), disabled_reason && ` ${disabled_reason}`], "state"],
  ["Next", ({ next_at }) => instant(next_at)],
];
