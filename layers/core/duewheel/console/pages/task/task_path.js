// The path of a task, drawn: from its creation to the notice of its outcome, with what has been, what is now and what is ahead.

import { countdown } from "../../parts/countdown.js";
import { el } from "../../parts/elements.js";
import { icon } from "../../parts/icons.js";
import { instant, span, written } from "../../parts/instants.js";
import { link } from "../../parts/router.js";
import { badge } from "../../parts/table.js";
import { waiting } from "./task_waiting.js";

const [WAITING, CALLING, RUNNING, OVER] = ["waiting", "calling", "running", "over"];
const KNOTS = { delivered: "tick", dead: "cross", cancelled: "slash", expired: "expired" };

export function path(task) {
  const now = stageOf(task);
  const before = [created(task), waited(task), page(task), tried(task)];
  const isAgain = now === WAITING && task.history.length > 0; // it has been called, and waits for the next attempt
  const stages = [...(isAgain ? [before[0], before[2], before[3], before[1]] : before), outcome(task), notice(task)];
  const at = stages.findIndex(({ stage }) => stage === now);
  return el("ol", { class: "path", "aria-label": "Path", "data-key": "path" }, stages.map((stage, index) => drawn(stage, index - (at < 0 ? stages.length : at), waiting(task))));
}

function stageOf({ status, waiting: found, running }) {
  if (status !== "pending") return OVER;
  if (running || found?.reason === "running") return RUNNING;
  return found?.reason === "calling" ? CALLING : WAITING;
}

// `distance` is that from the stage in which the task is, where `why` is said.
function drawn({ name, shape, at, more = [], isPassedBy = false, kind = "" }, distance, why) {
  const state = isPassedBy ? "passed-by" : distance < 0 ? "done" : distance === 0 ? "now" : "ahead";
  return el(
    "li",
    { class: `${state} ${kind}`.trim(), "data-key": name, "aria-current": state === "now" ? "step" : null },
    el("span", { class: "knot" }, icon(shape)),
    el("div", {}, el("p", { class: "stage" }, name), at && el("p", { class: "at" }, instant(at, { milliseconds: true })), [distance === 0 && why, ...more].filter(Boolean).map((one) => el("div", { class: "more" }, one))),
  );
}

function created({ created_at: at, redrives }) {
  return { name: "Created", shape: "plus", at, more: [redrives && `redriven ${redrives === 1 ? "once" : `${redrives} times`} since`] };
}

function waited(task) {
  const { status, due_at: due, created_at: from, next_at: next, parked, waiting: found } = task;
  const lead = Date.parse(due) - Date.parse(from);
  const until = next !== null && next !== due ? ["next attempt ", countdown(next)] : countdown(due);
  const isStill = status === "pending" && !found && !parked;
  return {
    name: status === "pending" ? "Waiting" : "Waited",
    stage: WAITING,
    shape: "hands",
    at: isStill ? next : found ? null : due,
    more: [
      isStill && until,
      parked && !found && "parked until its business is resumed",
      status !== "pending" && (lead > 0 ? `due ${span(lead)} after its creation` : "due at once"),
    ],
  };
}

// An attempt is made with the page of the second in which it was due.
function page({ status, history, waiting: found, next_at: next, parked }) {
  const shape = "page";
  if (found?.reason === "calling") return { name: "Page", shape, stage: CALLING, at: found.since, more: [found.run && el("code", {}, found.run)] };
  const last = history.at(-1);
  if (status === "pending" && !parked && last === undefined) return { name: "Page", shape, more: [`of ${secondOf(next)}`] };
  if (last === undefined) return { name: "Page", shape, isPassedBy: status !== "pending", more: [status === "pending" ? "not before it is resumed" : "none"] };
  return { name: "Page", shape, more: [`of ${secondOf(Date.parse(last.at) - last.lateness_ms)}`, `called ${span(last.lateness_ms)} later`] };
}

function secondOf(at) {
  return written(new Date(at).toISOString()).slice(11);
}

function tried({ attempts, history, status }) {
  const last = history.at(-1);
  const many = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
  if (last === undefined) return { name: "Attempts", shape: "retry", isPassedBy: status !== "pending", more: [attempts > 0 ? many : status === "pending" ? "none yet" : "none"] };
  return { name: "Attempts", shape: "retry", at: last.at, more: [[many, " ", badge(last.outcome)], last.status_code !== null && `status ${last.status_code}`] };
}

function outcome({ status, reason, settled_at: at, running, expires_at: kept }) {
  if (!(status in KNOTS)) return { name: "Outcome", stage: RUNNING, shape: running ? "running" : "dots", more: [!running && "none yet"] };
  return { name: "Outcome", shape: KNOTS[status], kind: status, at, more: [badge(status), reason, kept && ["record kept until ", instant(kept)]] };
}

function notice({ status, settled_at: at, notice_id: id, on_outcome: asked, notice_of: of }) {
  const more = [
    id && el("a", { href: link(["tasks", id]) }, "the notice of its outcome"),
    !id && asked && status === "pending" && `of ${asked.outcomes.join(", ")}`,
    !id && (!asked || status !== "pending") && (of ? "a notice has none" : status === "pending" ? "as its business says" : "none was made"),
  ];
  return { name: "Notices", shape: "notice", at: id && at, isPassedBy: !id && status !== "pending", more };
}
