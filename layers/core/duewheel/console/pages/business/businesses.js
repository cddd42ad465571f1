// The businesses that have settings or have had tasks, and a way to any other by its name.

import { el, fill } from "../../parts/elements.js";
import { text } from "../../parts/form.js";
import { instant } from "../../parts/instants.js";
import { go, link } from "../../parts/router.js";
import { section } from "../../parts/section.js";
import { call } from "../../parts/service.js";
import { empty } from "../../parts/states.js";
import { badge, pager, table } from "../../parts/table.js";

const EVERY_MS = 10_000;
const ON_A_PAGE = 50;

export async function businessesPage({ place, query, signal }) {
  const list = section("", EVERY_MS, signal, async () => {
    const { members } = await call("GET", ["businesses"], { query: { limit: ON_A_PAGE, cursor: query.cursor }, signal });
    return listed(members, query.cursor);
  });
  fill(place, el("h1", {}, "Businesses"), byName(), list.whole);
  await list.run();
}

// A business needs no settings to have tasks, and is listed once one was due.
function byName() {
  const hint = "Any business may be used without settings of its own; listed are those that have some, or have had tasks.";
  const name = text("biz_type", "Name of a business", "", { hint });
  const control = name.querySelector("input");
  const open = (...more) => {
    const wanted = control.value.trim();
    if (wanted === "") control.focus();
    else go(["businesses", wanted, ...more]);
  };
  const submit = (event) => { event.preventDefault(); open(); };
  return el(
    "form",
    { class: "by-name", on: { submit } },
    name,
    el("div", { class: "buttons" }, el("button", {}, "Open"), el("button", { type: "button", on: { click: () => open("edit") } }, "Configure")),
  );
}

function listed({ businesses, cursor }, here) {
  const pages = pager(here, cursor, (to) => link(["businesses"], { cursor: to }));
  if (businesses.length === 0) return [empty(here ? "No businesses on this page." : "No business has settings of its own, or has had tasks, yet."), here && pages];
  return [table("Businesses", COLUMNS, businesses, { key: (row) => row.biz_type }), pages];
}

const COLUMNS = [
  ["Business", (row) => el("a", { href: link(["businesses", row.biz_type]) }, row.biz_type)],
  ["State", (row) => (row.paused ? badge("paused") : "not paused")],
  ["Lane", (row) => lane(row)],
  ["Breakers", (row) => (row.breakers.length === 0 ? "none open" : [badge(`${row.breakers.length} open`, "bad"), " ", row.breakers.map(({ host }) => host).join(", ")])],
  ["Calls a second", (row) => row.calls_per_second ?? "no limit"],
  ["Settings", (row) => (row.version > 0 ? ["changed ", instant(row.updated_at)] : el("span", { class: "quiet" }, "none of its own"))],
  ["Last task", (row) => instant(row.last_task_at)],
];

export function lane({ lane: observed }) {
  return observed === "slow" ? badge("slow", "warn") : observed;
}
