// The fields of a timer: as controls, and as members of a request.

import { businessField } from "../../parts/business_field.js";
import { callbackFields, callbackOf } from "../../parts/callback_form.js";
import { el } from "../../parts/elements.js";
import { area, box, choice, instantField, text } from "../../parts/form.js";
import { viewersZone } from "../../parts/instants.js";
import { labelField, labelsOf } from "../../parts/labels.js";
import { typedNumber } from "../../parts/numbers.js";
import { retryFields, retryOf } from "../../parts/retry_fields.js";
import { onOutcomeField, onOutcomeOf } from "../../parts/on_outcome.js";
import { Problem } from "../../parts/service.js";
import { words } from "../../parts/words.js";
import { zoneNames } from "../../parts/zones.js";

// A timer with only a name and a schedule.
export const BLANK = {
  name: "", cron: null, every_seconds: null, timezone: "UTC", start_at: null, end_at: null, max_runs: null,
  jitter_seconds: 0, callback: null, retry: null, expires_after_seconds: null, dst_gap: "shift", dst_overlap: "first",
  misfire: "latest", grace_seconds: 60, overlap: "allow", exclude: [], disable_on_stop: false, pause_on_failures: null,
  tolerance_seconds: 0, priority: null, flow_key: null, labels: {}, on_outcome: null,
};
const WHOLE = { inputmode: "numeric" };
const GAPS = [["shift", "the first instant after it"], ["skip", "not at all"]];
const OVERLAPS = [["first", "the first time"], ["last", "the last time"], ["both", "both times"]];
const MISFIRES = [["latest", "the latest is called"], ["all", "all are called"], ["skip", "none is called"]];
const PRIORITIES = [["", "as the business says"], "high", "normal", "low"];
const CROWDS = [
  ["allow", "both are called"],
  ["skip", "the later one is skipped"],
  ["buffer_one", "one waits for its end"],
  ["cancel_running", "the earlier one is cancelled"],
];

// `business` is the one that a new timer begins with; null where there is a timer, which keeps its own.
export function timerFields(timer, payload, { business, preview, signal }) {
  return [
    el("div", { class: "filters" }, business !== null && businessField(business, signal), text("name", "Name", timer.name)),
    el("div", { class: "filters" }, schedule(timer)),
    preview.place,
    callbackFields("callback", "Calls", timer.callback, "as the business says"),
    area("payload", "Payload (JSON)", payload, { hint: "Handed through as it is written, but for {{due_at}}, {{due_ms}}, {{number}}, {{task_id}} and {{timer_id}} in its strings." }),
    business !== null && box("enabled", "Enabled from now on", true),
    el("details", {}, el("summary", {}, "Bounds, clock changes, misfires, retries"), rarer(timer)),
  ];
}

function schedule({ cron, every_seconds, timezone }) {
  const list = el("datalist", { id: "zones" }, zoneNames().map((name) => el("option", { value: name })));
  return [
    text("cron", "Cron expression", cron ?? "", { class: "mono", hint: "five fields, or six with seconds first: 30 8 * * MON-FRI" }),
    text("every_seconds", "or an interval (seconds)", shown(every_seconds), { ...WHOLE, hint: "instead of a cron expression" }),
    el("div", {}, text("timezone", "Time zone", timezone, { list: list.id, hint: "in which cron and excluded dates are read" }), list),
  ];
}

function rarer(timer) {
  return [
    el(
      "div",
      { class: "filters" },
      bound("start_at", "Not before", timer.start_at),
      bound("end_at", "Not after", timer.end_at),
      text("max_runs", "Occurrences in all", shown(timer.max_runs), { ...WHOLE, placeholder: "no limit" }),
      text("jitter_seconds", "Put off by up to (seconds)", shown(timer.jitter_seconds), WHOLE),
      text("tolerance_seconds", "Tolerance, to share seconds (seconds)", shown(timer.tolerance_seconds), WHOLE),
      text("flow_key", "Flow key", timer.flow_key ?? "", { placeholder: "none" }),
      choice("misfire", "Of those that are late", MISFIRES, timer.misfire),
      text("grace_seconds", "Late is beyond (seconds)", shown(timer.grace_seconds), WHOLE),
      choice("priority", "Priority", PRIORITIES, timer.priority ?? ""),
      choice("overlap", "While an earlier run is pending", CROWDS, timer.overlap),
      text("expires_after_seconds", "Expires after (seconds)", shown(timer.expires_after_seconds), { ...WHOLE, placeholder: "never" }),
      choice("dst_gap", "Of a local time that a day lacks, fires", GAPS, timer.dst_gap),
      choice("dst_overlap", "Of one that a day has twice, fires", OVERLAPS, timer.dst_overlap),
    ),
    labelField("labels", "Labels", timer.labels, "name:value, one a line, of the timer and its runs"),
    area("exclude", "Excluded dates", timer.exclude.join("\n"), { hint: "YYYY-MM-DD in its time zone, one a line", rows: 3 }),
    retryFields(timer.retry, "as the business says"),
    onOutcomeField(timer.on_outcome, "as the business says"),
    box("disable_on_stop", "Disabled when the receiver says stop", timer.disable_on_stop),
    text("pause_on_failures", "Disabled after so many failed runs in a row", shown(timer.pause_on_failures), { ...WHOLE, placeholder: "never" }),
  ];
}

function bound(name, label, instant) {
  return instantField(name, label, instant, { hint: `in ${viewersZone()}, your zone` });
}

function shown(number) {
  return number === null ? "" : `${number}`;
}

// All members except the payload, which is text. null for missing ones.
export function typedMembers(values) {
  const { biz_type, enabled, name, misfire, overlap, disable_on_stop, priority } = values;
  return {
    ...(biz_type !== undefined && { biz_type, enabled }),
    name,
    ...typedSchedule(values),
    jitter_seconds: typedNumber(values.jitter_seconds),
    tolerance_seconds: typedNumber(values.tolerance_seconds),
    flow_key: values.flow_key || null,
    labels: values.labels ? labelsOf(values.labels) : null,
    misfire,
    grace_seconds: typedNumber(values.grace_seconds),
    overlap,
    priority: priority || null,
    expires_after_seconds: typedNumber(values.expires_after_seconds),
    disable_on_stop,
    pause_on_failures: typedNumber(values.pause_on_failures),
    on_outcome: onOutcomeOf(values.on_outcome),
    callback: callbackOf("callback", values),
    retry: retryOf(values),
  };
}

export function typedSchedule(values) {
  const { dst_gap, dst_overlap } = values;
  return {
    cron: values.cron || null,
    every_seconds: typedNumber(values.every_seconds),
    timezone: values.timezone || null,
    start_at: values.start_at || null,
    end_at: values.end_at || null,
    max_runs: typedNumber(values.max_runs),
    dst_gap,
    dst_overlap,
    exclude: words(values.exclude),
  };
}

// The members that are given.
export function saidMembers(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null && value !== ""));
}

// A request's body. It contains the payload as the typed text; null: no payload.
export function bodyOf(members, payload) {
  const said = JSON.stringify(members);
  if (payload === null) return said;
  parsedAt("payload", payload); // or else it might be more than one member
  return `${said.slice(0, -1)}${said === "{}" ? "" : ","}"payload":${payload}}`;
}

function parsedAt(field, text) {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Problem(422, { field, detail: `is no JSON: ${error.message}` });
  }
}
