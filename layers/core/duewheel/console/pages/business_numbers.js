// What became of a business's tasks in the last day, and how near to its limits they came.

import { el, svg } from "../parts/elements.js";
import { instant, span, written } from "../parts/instants.js";
import { call } from "../parts/service.js";
import { empty } from "../parts/states.js";
import { table } from "../parts/table.js";

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
const BAR_MS = 30 * MINUTE_MS;
const HOUR_MS = 60 * MINUTE_MS;
const BARS = DAY_MS / BAR_MS;
const LATELY_MINUTES = 5;

const COUNTED = [
  ["created", "came up"], ["delivered", "delivered"], ["pending", "still pending"], ["dead", "dead"],
  ["expired", "expired"], ["cancelled", "cancelled"], ["failed_attempts", "failed attempts"],
];

// The service's own clock says which day that is: the viewer's may be wrong.
export async function lastDay(name, signal) {
  const path = ["businesses", name, "stats"];
  const { to } = (await call("GET", path, { signal })).members;
  const from = new Date(Date.parse(to) - DAY_MS).toISOString();
  return (await call("GET", path, { query: { from, to }, signal })).members;
}

export function numbers(day) {
  if (day.total.created === 0 && day.total.failed_attempts === 0) return empty("None of its tasks has come up in the last 24 hours.");
  const hours = summed(day.minutes, HOUR_MS);
  return [
    el("ul", { class: "figures" }, COUNTED.map(([member, said]) => el("li", {}, el("span", { class: "figure" }, day.total[member].toLocaleString("en-GB")), " ", said))),
    el("p", {}, lateness(day.total)),
    bars(day),
    el("details", {}, el("summary", {}, "By the hour"), table("By the hour", HOURS, hours.reverse(), { key: ({ at }) => at })),
    el("p", { class: "hint" }, "Each task counts in the minute in which it first came up; counted until ", instant(day.counted_until), "."),
  ];
}

const HOURS = [
  ["Hour from", ({ at }) => instant(at)],
  ...COUNTED.map(([member, said]) => [`${said[0].toUpperCase()}${said.slice(1)}`, (hour) => hour[member].toLocaleString("en-GB")]),
];

function lateness({ delivered, lateness: { sum_ms: sum, max_ms: max } }) {
  if (delivered === 0) return "None was delivered.";
  return `Delivered on average ${span(Math.round(sum / delivered))} after the due instant, ${span(max)} at the most.`;
}

// Sums of the minutes in each stretch in which there was something.
function summed(minutes, stretchMs) {
  const sums = new Map();
  for (const minute of minutes) {
    const beginsMs = Math.floor(Date.parse(minute.at) / stretchMs) * stretchMs;
    const sum = sums.get(beginsMs) ?? { beginsMs, at: new Date(beginsMs).toISOString() };
    for (const [member] of COUNTED) sum[member] = (sum[member] ?? 0) + minute[member];
    sums.set(beginsMs, sum);
  }
  return [...sums.values()];
}

function bars({ from, to, minutes }) {
  const firstMs = Math.floor(Date.parse(from) / BAR_MS) * BAR_MS;
  const stretches = summed(minutes, BAR_MS);
  const most = Math.max(1, ...stretches.map(({ created }) => created));
  return el(
    "figure",
    { class: "bars" },
    svg(
      "svg",
      { viewBox: `0 0 ${BARS + 1} 20`, preserveAspectRatio: "none", role: "img", "aria-label": `Tasks that came up, by half hours: at most ${most}` },
      stretches.map((stretch) => bar(stretch, (stretch.beginsMs - firstMs) / BAR_MS, most)),
    ),
    el("figcaption", { class: "hint" }, el("span", {}, written(from)), el("span", {}, `up to ${most.toLocaleString("en-GB")} in half an hour; what is dead stands out`), el("span", {}, written(to))),
  );
}

function bar(stretch, x, most) {
  const height = (20 * stretch.created) / most;
  const dead = (20 * stretch.dead) / most;
  const part = (kind, y, high) => svg("rect", { class: kind, x: x + 0.1, width: 0.8, y, height: high });
  return svg("g", {}, svg("title", {}, `${written(stretch.at)}: ${stretch.created} came up, ${stretch.dead} dead`), part("all", 20 - height, height), dead > 0 && part("bad", 20 - dead, dead));
}

// The limits beside what the statistics tell of their use. They count no creates, only what comes up.
export function limits(business, day) {
  const { lately, busiest } = rates(day);
  const seen = `${perSecond(lately)} in the last ${LATELY_MINUTES} minutes, ${perSecond(busiest)} in the busiest minute of the last hour`;
  return table("Limits", LIMITS, [
    { said: "Calls a second", limit: business?.calls_per_second, seen: [seen, used(busiest, business?.calls_per_second)] },
    { said: "Calls of one page at once", limit: business?.calls_in_flight, seen: "not counted" },
    { said: "Creates a second", limit: business?.creates_per_second, seen: "not counted" },
    { said: "Creates at once after a pause", limit: business?.creates_burst, seen: "not counted" },
  ], { key: ({ said }) => said });
}

const LIMITS = [
  ["Limit", ({ said }) => said],
  ["Set to", ({ limit }) => el("span", { class: "whole" }, limit?.toLocaleString("en-GB") ?? "no limit")],
  ["Seen", ({ seen }) => seen],
];

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
