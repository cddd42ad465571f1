// What became of a business's tasks in the last day, and how near to its limits they came.

import { el } from "../../parts/elements.js";
import { instant, span } from "../../parts/instants.js";
import { call } from "../../parts/service.js";
import { empty } from "../../parts/states.js";
import { table } from "../../parts/table.js";
import { tasksOverTime } from "../task/tasks_over_time.js";

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
const LATELY_MINUTES = 5;

const COUNTED = [
  ["created", "fell due"], ["delivered", "delivered"], ["pending", "still pending"], ["dead", "dead"],
  ["expired", "expired"], ["cancelled", "cancelled"], ["failed_attempts", "failed attempts"],
];

// The service's own clock says which day that is: the viewer's may be wrong.
export async function lastDay(name, signal) {
  const path = ["businesses", name, "stats"];
  const { to } = (await call("GET", path, { signal })).members;
  const from = new Date(Date.parse(to) - DAY_MS).toISOString();
  return (await call("GET", path, { query: { from, to }, signal })).members;
}

export function numbers(day, state) {
  if (!hasTasks(day)) return empty("None of its tasks has fallen due in the last 24 hours.");
  return [
    el("ul", { class: "figures" }, COUNTED.map(([member, said]) => el("li", {}, el("span", { class: "figure" }, day.total[member].toLocaleString("en-GB")), " ", said))),
    el("p", {}, lateness(day.total)),
    tasksOverTime(day.minutes, Date.parse(day.to), { biz_type: day.biz_type, hours: 24 }, state),
    el("p", { class: "hint" }, "Each task counts in the minute in which it first fell due; counted until ", instant(day.counted_until), ". Before ", instant(day.closed_until), " only tasks that are still pending change the figures."),
  ];
}

export function hasTasks({ total }) {
  return total.created > 0 || total.failed_attempts > 0;
}

function lateness({ delivered, lateness: { sum_ms: sum, max_ms: max } }) {
  if (delivered === 0) return "None was delivered.";
  return `Delivered on average ${span(Math.round(sum / delivered))} after the due instant, ${span(max)} at the most.`;
}

// The limits beside their use: calls by the statistics, turns and permits by the records that all processes share.
export function limits(business, day) {
  const { lately, busiest } = rates(day);
  const seen = `${perSecond(lately)} in the last ${LATELY_MINUTES} minutes, ${perSecond(busiest)} in the busiest minute of the last hour`;
  return table("Limits", LIMITS, [
    { said: "Calls a second", limit: business?.calls_per_second, seen: [seen, used(busiest, business?.calls_per_second), line(business?.usage?.calls)] },
    { said: "Calls in flight", limit: business?.calls_in_flight, seen: permits(business) },
    { said: "Creates a second", limit: business?.creates_per_second, seen: turns(business?.usage?.creates) },
  ], { key: ({ said }) => said });
}

const LIMITS = [
  ["Limit", ({ said }) => said],
  ["Set to", ({ limit }) => el("span", { class: "whole" }, limit?.toLocaleString("en-GB") ?? "no limit")],
  ["Seen", ({ seen }) => seen],
];

function line(calls) {
  if (!calls) return null;
  const many = calls.waiting === 1 ? "1 task waits" : `${calls.waiting.toLocaleString("en-GB")} tasks wait`;
  return el("div", {}, calls.waiting > 0 ? `${many} in its line; ` : "no task waits in its line; ", freeIn(calls));
}

function permits({ calls_in_flight: limit = null, usage } = {}) {
  const found = usage?.calls_in_flight;
  return found ? `${found.used} under way${used(found.used, limit)}, ${found.waiting === 1 ? "1 waits" : `${found.waiting.toLocaleString("en-GB")} wait`}` : quiet("no limit to be used");
}

function turns(creates) {
  if (!creates) return quiet("no limit to be used");
  return creates.taken > 0 ? `${creates.taken.toLocaleString("en-GB")} taken, all are free in ${span(creates.all_free_in_ms)}` : "all are free";
}

function freeIn({ free_in_ms: wait }) {
  return wait > 0 ? `a turn is free in ${span(wait)}` : "a turn is free now";
}

function quiet(said) {
  return el("span", { class: "quiet" }, said);
}

function rates({ to, minutes }) {
  const endMs = Date.parse(to);
  const since = (count) => minutes.filter(({ at }) => Date.parse(at) >= endMs - count * MINUTE_MS).map(calls);
  const lately = since(LATELY_MINUTES).reduce((sum, count) => sum + count, 0) / (LATELY_MINUTES * 60);
  return { lately, busiest: Math.max(0, ...since(60)) / 60 };
}

function calls({ delivered, failed_attempts: failed }) {
  return delivered + failed;
}

function perSecond(rate) {
  return rate === 0 ? "none" : rate < 0.01 ? "less than 0.01" : `about ${+rate.toFixed(rate < 10 ? 2 : 0)}`;
}

function used(rate, limit) {
  return limit ? ` (${Math.round((100 * rate) / limit)} % of the limit)` : "";
}
