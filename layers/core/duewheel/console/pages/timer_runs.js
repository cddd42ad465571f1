// The runs of a timer up to now, the latest first: its occurrences, and those by hand.

import { el, fill } from "../parts/elements.js";
import { choice, form } from "../parts/form.js";
import { instant, span } from "../parts/instants.js";
import { Live } from "../parts/live.js";
import { repeatedly } from "../parts/refresh.js";
import { go, link } from "../parts/router.js";
import { call } from "../parts/service.js";
import { empty } from "../parts/states.js";
import { badge, pager, table } from "../parts/table.js";

const EVERY_MS = 5000;
const PAGE = 50;
const STATUSES = [["", "any"], "pending", "delivered", "dead", "cancelled", "expired"];

export async function timerRunsPage({ place, parameters: { id }, query: { status = "", cursor }, signal }) {
  const path = ["timers", id];
  const name = new Live(async (signal) => (await call("GET", path, { signal })).members, (timer) => el("h1", {}, "Runs of ", el("a", { href: link(path) }, timer.name)));
  const runs = new Live(
    async (signal) => (await call("GET", [...path, "runs"], { query: { status, cursor, limit: PAGE }, signal })).members,
    ({ tasks, cursor: next }) => [
      tasks.length === 0 && (next || cursor) ? empty("No run on this page.") : runsTable(tasks, "There are no such runs."),
      pager(cursor, next, (cursor) => link([...path, "runs"], { status, cursor })),
    ],
  );
  const filters = el("div", { class: "filters" }, choice("status", "Status", STATUSES, status));
  fill(place, name.place, form(filters, "Show", (values) => go([...path, "runs"], values), { "aria-label": "Which runs" }), runs.place);
  await repeatedly(EVERY_MS, signal, async () => {
    await name.refresh(signal);
    if (name.answer !== null) await runs.refresh(signal); // else all has been said
  });
}

export function runsTable(tasks, none) {
  if (tasks.length === 0) return empty(none);
  return table("Runs", COLUMNS, tasks, { key: ({ task_id }) => task_id });
}

const COLUMNS = [
  ["Occurrence", ({ occurrence_at }) => instant(occurrence_at)],
  ["Number", ({ number }) => (number === null ? el("span", { class: "quiet" }, "by hand") : `${number}`)],
  ["Outcome", outcome],
  ["Attempts", ({ attempts }) => `${attempts}`],
  ["Lateness", ({ lateness_ms }) => span(lateness_ms)],
  ["Task", ({ task_id }) => el("a", { class: "mono", href: link(["tasks", task_id]) }, task_id)],
];

function outcome({ status, reason, parked, last_error }) {
  const shown = status === "pending" && parked ? "parked" : status;
  const why = [reason, last_error].filter(Boolean).join(": ");
  return [badge(shown), why !== "" && [" ", el("span", { class: "quiet" }, why)]];
}
