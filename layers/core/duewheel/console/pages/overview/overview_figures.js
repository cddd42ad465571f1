// The figures that an operator looks at first, side by side.

import { el } from "../../parts/elements.js";
import { span, written } from "../../parts/instants.js";
import { link } from "../../parts/router.js";
import { latenessUpTo, summed } from "../wheel/wheel_statistics.js";

const MINUTE_MS = 60_000;

export function figures(wheel, found) {
  return el(
    "ul",
    { class: "overview-figures", "aria-label": "Figures" },
    card("Calls", wheel, dispatch),
    card("Last counted minute", found, lastMinute),
    card("Last hour", found, lastHour),
    card("At work", found, atWork),
    card("Next hour", wheel, nextHour),
  );
}

function card(name, { answer, problem }, part) {
  const unknown = problem === null ? "loading …" : problem.message;
  const [figure, ...lines] = answer === null ? [el("span", { class: "quiet" }, "–"), unknown] : part(answer);
  return el("li", { class: "card", "data-key": name }, el("h3", {}, name), el("p", { class: "figure" }, figure), lines.filter(Boolean).map((line) => el("p", {}, line)));
}

function dispatch({ time_pointer: time, sweep_pointer: sweep, open_places: places }) {
  const open = places.count;
  return [
    time.lag_seconds <= 1 ? "on time" : [el("span", { class: "of-bad" }, span(time.lag_seconds * 1000)), " ", el("span", { class: "unit" }, "late")],
    `swept up to ${sweep.lag_seconds === 0 ? "now" : `${span(sweep.lag_seconds * 1000)} ago`}`,
    open === 0 ? "no open place" : el("a", { href: link(["wheel"]) }, open === 1 ? "1 open place" : `${open.toLocaleString("en")} open places`),
  ];
}

function lastMinute({ minutes, to }) {
  const at = Date.parse(to) - MINUTE_MS;
  const sums = summed(minutes.filter((minute) => Date.parse(minute.at) === at));
  const calls = sums.delivered + sums.failed_attempts;
  return [
    [number(sums.created), " ", el("span", { class: "unit" }, "due")],
    `${written(new Date(at).toISOString()).slice(11, 16)}: ${perSecond(calls)} calls a second`,
    sums.delivered === 0 ? "none delivered" : `p50 ≤ ${late(0.5, sums)}, p99 ≤ ${late(0.99, sums)} late`,
  ];
}

function late(share, { lateness }) {
  return span(latenessUpTo(share, lateness));
}

function perSecond(calls) {
  const rate = calls / 60;
  return rate === 0 ? "no" : rate < 10 ? +rate.toFixed(2) : Math.round(rate).toLocaleString("en");
}

function lastHour({ minutes }) {
  const sums = summed(minutes);
  const bad = [[sums.failed_attempts, "failed attempts", "of-warn"], [sums.dead, "dead", "of-bad"], [sums.expired, "expired", "of-warn"]].filter(([count]) => count > 0);
  return [
    [number(sums.delivered), " ", el("span", { class: "unit" }, "delivered")],
    bad.length === 0 ? "no failed attempt" : bad.map(([count, said, level], index) => [index > 0 && ", ", el("span", { class: level }, `${number(count)} ${count === 1 && said === "failed attempts" ? "failed attempt" : said}`)]),
    sums.delivered > 0 && `p99 ≤ ${late(0.99, sums)} late`,
  ];
}

// Tasks of the hour that have not ended, and calls under way as far as limits count them.
function atWork({ minutes, businesses, operations }) {
  const { pending } = summed(minutes);
  const permits = businesses.map(({ usage }) => usage.calls_in_flight).filter(Boolean);
  const sum = (name) => permits.reduce((total, one) => total + one[name], 0);
  return [
    [number(pending), " ", el("span", { class: "unit" }, "pending")],
    "running, waiting, or to be tried again",
    permits.length > 0 && `${number(sum("used"))} calls in flight, ${number(sum("waiting"))} waiting, where limited`,
    operations.length > 0 && el("a", { href: link(["operations"]) }, operations.length === 1 ? "1 operation under way" : `${operations.length} operations under way`),
  ];
}

function nextHour({ forecast: { tasks, minutes } }) {
  const best = minutes.reduce((most, minute) => (minute.tasks > (most?.tasks ?? 0) ? minute : most), null);
  return [
    [tasks === 0 ? "few" : `≈ ${number(tasks)}`, " ", el("span", { class: "unit" }, "expected")],
    best === null ? "no crowded minute" : `most at ${written(best.at).slice(11, 16)}: ${number(best.tasks)}`,
  ];
}

function number(count) {
  return count.toLocaleString("en");
}
