// What tasks died of in the last day, grouped by the error, over all businesses.

import { el } from "../../parts/elements.js";
import { instant } from "../../parts/instants.js";
import { link } from "../../parts/router.js";
import { table } from "../../parts/table.js";

const SHOWN = 10;
const ERROR_CHARACTERS_MAX = 120; // of the filter of dead tasks

export function deathsPart({ deaths }) {
  const { groups } = deaths;
  return el(
    "section",
    { "aria-labelledby": "deaths" },
    el("h2", { id: "deaths" }, "Latest deaths"),
    groups.length > 0 && el("div", { class: "overview-rows" }, table("Deaths by their error", COLUMNS, groups.slice(0, SHOWN), { key: keyOf })),
    el("p", { class: "hint" }, looked(deaths)),
  );
}

function keyOf({ last_error: error, reason }) {
  return JSON.stringify([error, reason]);
}

const COLUMNS = [
  ["Error", ({ last_error: error }) => (error === null ? el("span", { class: "quiet" }, "none") : el("code", {}, error))],
  ["Why it ended", ({ reason }) => reason],
  ["Tasks", ({ tasks }) => tasks.toLocaleString("en")],
  ["Businesses", (group) => group.businesses.map((one, index) => [index > 0 && ", ", el("a", { href: deadHref(one.biz_type, group) }, one.biz_type), ` ${one.tasks.toLocaleString("en")}`])],
  ["Last one", ({ last_died_at: at, last_task_id: id }) => el("a", { href: link(["tasks", id]) }, instant(at))],
];

function deadHref(name, { last_error: error, reason }) {
  return link(["businesses", name, "dead"], { reason, last_error: error?.slice(0, ERROR_CHARACTERS_MAX) });
}

function looked({ businesses, tasks, more, groups }) {
  const died = tasks === 0 ? "no death" : tasks === 1 ? "1 death" : `the latest ${tasks} deaths`;
  const hidden = groups.length > SHOWN ? ` ${groups.length - SHOWN} more errors are not shown.` : "";
  const among = businesses === 1 ? "1 business with tasks" : `${businesses} businesses with tasks`;
  return `Of the last 24 hours, in ${among} since yesterday: ${died}${more ? "; there are more, or more businesses" : ""}.${hidden}`;
}
