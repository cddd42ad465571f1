// An operation in words: what it does to which tasks, and how far it is.

import { el } from "../../parts/elements.js";
import { instant, span } from "../../parts/instants.js";
import { labelLinks } from "../../parts/labels.js";
import { once } from "../../parts/once.js";
import { confirmed } from "../../parts/outcomes.js";
import { link } from "../../parts/router.js";
import { call } from "../../parts/service.js";
import { badge, facts } from "../../parts/table.js";

const DONE = { cancel: "cancelled", reschedule: "rescheduled", run: "run now", redrive: "redriven", pause: "paused", resume: "resumed" };
const KINDS = { running: "accent", stopping: "warn", stopped: "warn", done: "good", failed: "bad" };

export function hasEnded({ state }) {
  return state !== "running" && state !== "stopping";
}

export function stateOf({ state }) {
  return badge(state, KINDS[state] ?? state);
}

export function nameOf({ action, dry_run: isDry }) {
  return `${action[0].toUpperCase()}${action.slice(1)}${isDry ? " (count)" : ""}`;
}

export function titleOf({ action, biz_type: business, dry_run: isDry }) {
  return isDry ? `Count tasks of ${business} to ${action}` : `${nameOf({ action })} tasks of ${business}`;
}

// 1234 → "1,234 tasks"
export function tasks(count) {
  return `${number(count)} ${count === 1 ? "task" : "tasks"}`;
}

function number(count) {
  return count.toLocaleString("en-GB");
}

export function outcomeOf({ action, dry_run: isDry, changed, unchanged, refused }, most = null) {
  return [
    `${most ? `${number(changed)} of ${tasks(most)}` : tasks(changed)} ${isDry ? "would be " : ""}${DONE[action] ?? "changed"}`,
    unchanged > 0 && `${number(unchanged)} were so already`,
    refused > 0 && `${number(refused)} refused`,
  ].filter(Boolean).join(", ");
}

// A bar, and the same in words. `total` is how many tasks there are, where the viewer has had them counted.
export function progressOf(operation, total = null) {
  const { changed, unchanged, refused, looked_at: looked, position, last_problem: trouble } = operation;
  const most = operation.total ?? total;
  const isOver = hasEnded(operation);
  const reached = changed + unchanged + refused;
  const bar = isOver ? null : el("progress", { "data-key": "bar", "aria-label": "Progress", ...(most && { max: most, value: Math.min(reached, most) }) });
  return [
    bar,
    el("p", { "data-key": "outcome" }, outcomeOf(operation, isOver ? null : most), "."),
    !isOver && position && el("p", { class: "quiet", "data-key": "position" }, `${tasks(looked)} looked at; now at those due at `, instant(position), "."),
    trouble && el("p", { class: "problem", "data-key": "trouble" }, trouble),
  ];
}

// A button; `stopped` gets the operation as it is then.
export function stopButton(id, stopped) {
  const stop = once(() => confirmed({ title: "Stop this operation?", text: STOPPING, verb: "Stop it" }, async () => {
    stopped((await call("POST", ["operations", id, "stop"])).members);
    return "The operation stops.";
  }));
  return () => el("button", { type: "button", "data-key": "stop", on: { click: stop } }, "Stop");
}

const STOPPING = "The tasks that it has not reached stay as they are. Those that it has changed stay changed.";

export function requestOf(operation) {
  const { operation_id: id, biz_type: business, action, due_at: due, shift_seconds: shift, per_second: pace } = operation;
  return facts([
    ["Operation id", el("code", {}, id)],
    ["Business", el("a", { href: link(["businesses", business]) }, business)],
    ["Action", operation.dry_run ? `${action}: only counted, nothing is changed` : action],
    due && ["To the instant", instant(due)],
    shift && ["By", `${span(Math.abs(shift) * 1000)} ${shift > 0 ? "later" : "earlier"}`],
    ["Tasks", scopeOf(operation)],
    pace && ["Pace", `at most ${pace.toLocaleString("en-GB")} a second`],
    ["Started", [instant(operation.created_at), operation.created_by && [" by ", el("code", {}, operation.created_by)]]],
    operation.ended_at && ["Ended", instant(operation.ended_at)],
  ]);
}

function scopeOf({ biz_type: business, total, filter }) {
  if (!filter) return `${tasks(total)} by id`;
  const { labels, due_from: dueFrom, due_to: dueTo, since, until, ...rest } = filter;
  const said = [
    ...Object.entries(rest).map(([name, value]) => [`${NAMES[name] ?? name} `, el("code", {}, String(value))]),
    dueFrom && ["due from ", instant(dueFrom)],
    dueTo && ["due before ", instant(dueTo)],
    since && ["died from ", instant(since)],
    until && ["died before ", instant(until)],
    labels && ["labels ", labelLinks(labels, ["tasks"], { biz_type: business })],
  ].filter(Boolean);
  const list = el("a", { href: listOf(business, filter) }, "the list of them");
  return [said.length === 0 ? "all that the action can change" : said.map((part, index) => [index > 0 && "; ", part]), " – ", list];
}

// The list of dead tasks knows their deaths, the list of all tasks the rest.
function listOf(business, { labels, ...filter }) {
  const death = Object.fromEntries(OF_DEATH.map((name) => [name, filter[name]]).filter(([, value]) => value));
  if (Object.keys(death).length > 0) return link(["businesses", business, "dead"], death);
  return link(["tasks"], { biz_type: business, ...filter, label: Object.entries(labels ?? {}).map((pair) => pair.join(":")).join("\n") });
}

const OF_DEATH = ["since", "until", "reason", "status_code", "last_error"];
const NAMES = { status: "status", key_prefix: "keys that begin with", flow_key: "flow key", timer_id: "timer", status_code: "last status", last_error: "last error contains" };
