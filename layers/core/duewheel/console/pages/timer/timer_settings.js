// What a timer says, and what has come of it, as its page shows them.

import { el } from "../../parts/elements.js";
import { instant, span } from "../../parts/instants.js";
import { labelLinks } from "../../parts/labels.js";
import { shownOnOutcome } from "../../parts/on_outcome.js";
import { rawMember } from "../../parts/raw_member.js";
import { link } from "../../parts/router.js";
import { schedule } from "../../parts/schedule.js";
import { badge, facts } from "../../parts/table.js";

const GAP = { shift: "shifted to the first instant after the gap", skip: "skipped" };
const OVERLAP = { first: "the first time", last: "the last time", both: "both times" };
const CROWD = {
  allow: "allowed",
  skip: "skipped while an earlier run is pending",
  buffer_one: "one waits for the end of an earlier run",
  cancel_running: "an earlier run is cancelled",
};
const MISFIRE = { latest: "the latest is called", all: "all are called", skip: "none is called" };

export function head({ name, state, disabled_reason, next_at, biz_type, timer_id }) {
  return el(
    "div",
    {},
    el("h1", {}, name, " ", badge(state)),
    disabled_reason && el("p", { class: "hint" }, `The service disabled it: ${disabled_reason}.`),
    el("p", {}, "Next ", instant(next_at), " · business ", el("a", { href: link(["businesses", biz_type]) }, biz_type), " · ", el("code", { class: "quiet" }, timer_id)),
  );
}

export function counters({ counters }) {
  return el("dl", { class: "counters", "aria-label": "Counters" }, Object.entries(counters).map(([name, count]) => el("div", {}, el("dt", {}, name), el("dd", { class: "figure" }, `${count}`))));
}

export function settings(timer, text) {
  return [
    facts([...when(timer), ...how(timer), ...whose(timer)]),
    el("h3", {}, "Callback"),
    callback(timer.callback),
    el("h3", {}, "Payload"),
    timer.payload === null ? el("p", { class: "quiet" }, "none, or null") : el("pre", {}, rawMember(text, "payload")),
  ];
}

function when(timer) {
  return [
    ["Schedule", schedule(timer)],
    ["Starts", instant(timer.start_at)],
    ["Ends", instant(timer.end_at)],
    ["Occurrences in all", timer.max_runs === null ? "no limit" : `${timer.max_runs}`],
    ["Jitter", timer.jitter_seconds === 0 ? "none" : `up to ${span(timer.jitter_seconds * 1000)}`],
    ["Tolerance", timer.tolerance_seconds === 0 ? "none" : `up to ${span(timer.tolerance_seconds * 1000)}, at shared seconds`],
    timer.cron !== null && ["Clocks forward", GAP[timer.dst_gap]],
    timer.cron !== null && ["Clocks back", OVERLAP[timer.dst_overlap]],
    ["Excluded dates", dates(timer.exclude)],
  ];
}

function how(timer) {
  return [
    ["Misfires", `${MISFIRE[timer.misfire]}, beyond a grace of ${span(timer.grace_seconds * 1000)}`],
    ["Overlap", CROWD[timer.overlap]],
    ["Priority", timer.priority ?? "as the business says"],
    ["Flow key", timer.flow_key === null ? "none" : el("code", {}, timer.flow_key)],
    ["Labels", Object.keys(timer.labels).length === 0 ? "none" : labelLinks(timer.labels, ["timers"], { biz_type: timer.biz_type })],
    ["Retry", retry(timer.retry)],
    ["Expires", timer.expires_after_seconds === null ? "never" : `${span(timer.expires_after_seconds * 1000)} after it is due`],
    ["Told of outcomes", timer.on_outcome === null ? "as the business says" : shownOnOutcome(timer.on_outcome)],
    ["A stop disables it", timer.disable_on_stop ? "yes" : "no"],
    ["Failed runs disable it", timer.pause_on_failures === null ? "no" : `${timer.pause_on_failures} in a row`],
  ];
}

function whose(timer) {
  return [
    timer.managed_by && ["Managed by", el("span", {}, el("code", {}, timer.managed_by), "; its next apply undoes changes made here")],
    ["Version", `${timer.version}`],
    ["Created", instant(timer.created_at)],
    ["Changed", instant(timer.updated_at)],
  ];
}

function dates(days) {
  if (days.length === 0) return "none";
  if (days.length <= 3) return days.join(", ");
  return el("details", {}, el("summary", {}, `${days.length} dates`), days.join(", "));
}

function retry(policy) {
  if (policy === null) return "as the business says";
  const { attempts, delays_seconds: delays, first_delay_seconds: first, factor, max_delay_seconds: most, max_age_seconds: age } = policy;
  if (attempts === 1) return "one attempt alone";
  const waits = delays
    ? `after ${delays.map((seconds) => span(seconds * 1000)).join(", ")}`
    : `after ${span(first * 1000)}, then × ${factor}, at most ${span(most * 1000)}`;
  return [`${attempts} attempts in all, ${waits}`, age !== undefined && `, for ${span(age * 1000)}`].filter(Boolean).join("");
}

function callback(given) {
  if (given === null) return el("p", { class: "quiet" }, "as the business says");
  if (given.type !== "http") return el("pre", {}, JSON.stringify(given, null, 2));
  const { url, method, headers, body } = given;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const line = `${method ?? "(the business's method)"} ${url ?? "(the business's URL)"}`;
  return el("pre", {}, [line, ...lines, ...(body === "raw" ? ["", "the body is the payload's text, raw"] : [])].join("\n"));
}
