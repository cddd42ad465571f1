// The runs of a timer up to now, the latest first: its occurrences, and those by hand.

import { el, fill } from "../../parts/elements.js";
import { choice, form } from "../../parts/form.js";
import { instant, span } from "../../parts/instants.js";
import { go, link } from "../../parts/router.js";
import { section } from "../../parts/section.js";
import { call } from "../../parts/service.js";
import { empty } from "../../parts/states.js";
import { badge, pager, table } from "../../parts/table.js";
import { isUnknownTimer, unknownTimer } from "./timer_unknown.js";

const EVERY_MS = 5000;
const PAGE = 25;
const STATUSES = [["", "any"], "pending", "delivered", "dead", "cancelled", "expired"];

export async function timerRunsPage({ place, parameters: { id }, query: { status = "", cursor }, signal }) {
  const path = ["timers", id];
  const name = section(null, EVERY_MS, signal, async () => {
    try {
      const { members } = await call("GET", path, { signal });
      return el("h1", {}, "Runs of ", el("a", { href: link(path) }, members.name));
    } catch (error) {
      if (!isUnknownTimer(error)) throw error;
      listing.hidden = true;
      return unknownTimer(id);
    }
  });
  const runs = section(null, EVERY_MS, signal, async () => {
    const { members } = await call("GET", [...path, "runs"], { query: { status, cursor, limit: PAGE }, signal });
    return [listed(members, cursor), pager(cursor, members.cursor, (cursor) => link([...path, "runs"], { status, cursor }))];
  });
  const filters = el("div", { class: "filters" }, choice("status", "Status", STATUSES, status));
  const listing = el("div", {}, form(filters, "Show", (values) => go([...path, "runs"], values), { "aria-label": "Which runs" }), runs.whole);
  fill(place, name.whole, listing);
  await Promise.all([name.run(), runs.run()]);
}

// A page may be short, even empty, and the list go on behind it.
function listed({ tasks, cursor }, here) {
  return tasks.length === 0 && (cursor || here) ? empty("No run on this page.") : runsTable(tasks, "There are no such runs.");
}

export function runsTable(tasks, none) {
  if (tasks.length === 0) return empty(none);
  return table("Runs", COLUMNS, tasks, { key: ({ task_id }) => task_id });
}

const COLUMNS = [
  ["Occurrence", ({ occurrence_at }) => instant(occurrence_at)],
  ["Number", ({ number }) => (number === null ? el("span", { class: "quiet" }, "by hand") : `${number}`)],
  ["Outcome", outcome, "state"],
  ["Attempts", ({ attempts }) => `${attempts}`],
  ["Lateness", ({ lateness_ms }) => span(lateness_ms)],
  ["Task", ({ task_id }) => el("a", { class: "mono", href: link(["tasks", task_id]) }, task_id)],
];

function outcome({ status, reason, parked, last_error }) {
  const shown = status === "pending" && parked ? "parked" : status;
  const why = [reason, last_error].filter(Boolean).join(": ");
  return [badge(shown), why !== "" && [" ", el("span", { class: "quiet" }, why)]];
}
