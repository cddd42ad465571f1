// The facts of a task: its names, its business, its request, and its callback.

import { el } from "../../parts/elements.js";
import { instant, span } from "../../parts/instants.js";
import { labelLinks } from "../../parts/labels.js";
import { shownOnOutcome } from "../../parts/on_outcome.js";
import { link } from "../../parts/router.js";
import { facts } from "../../parts/table.js";
import { statusOf } from "./task_list.js";

export function taskHead(task) {
  return el(
    "div",
    { class: "head", "data-key": "head" },
    el("h1", { tabindex: "-1" }, "Task ", el("span", { class: "mono" }, task.key ?? task.task_id)),
    el("p", { class: "standing" }, statusOf(task), task.reason && [" ", el("span", { class: "quiet" }, task.reason)]),
  );
}

export function taskFacts(task) {
  return facts([
    ["Task id", el("code", {}, task.task_id)],
    task.key !== null && ["Key", el("code", {}, task.key)],
    task.flow_key !== undefined && ["Flow key", el("code", {}, task.flow_key)],
    task.labels !== undefined && ["Labels", labelLinks(task.labels, ["tasks"], { biz_type: task.biz_type })],
    ["Business", el("a", { href: link(["businesses", task.biz_type]) }, task.biz_type)],
    task.timer_id && ["Timer", el("a", { href: link(["timers", task.timer_id]) }, task.timer_id)],
    task.timer_id && ["Occurrence", [instant(task.occurrence_at), task.number === null ? " · run by hand" : ` · number ${task.number}`]],
    task.notice_of && ["Notice of", el("a", { href: link([isTimer(task.notice_of) ? "timers" : "tasks", task.notice_of]), class: "mono" }, task.notice_of)],
    task.notice_id && ["Told by", el("a", { href: link(["tasks", task.notice_id]), class: "mono" }, task.notice_id)],
    task.on_outcome && ["Told of outcomes", shownOnOutcome(task.on_outcome)],
    ["Due", instant(task.due_at, { milliseconds: true })],
    task.paused && ["Paused", [instant(task.paused.since), " by ", el("code", {}, task.paused.by)]],
    task.redrives && ["Redriven", `${task.redrives} ${task.redrives === 1 ? "time" : "times"}; it was ${task.redriven_from} before`],
    task.lateness_ms !== null && ["Late by", span(task.lateness_ms)],
    task.running?.note && ["Progress", task.running.note],
    task.result !== undefined && ["Result", el("span", { class: "result" }, task.result)],
    task.last_error && ["Last error", task.last_error],
    ["Retry", task.retry ? said(task.retry) : leftToBusiness()],
    task.expires_after_seconds !== undefined && ["Expires after", `${span(task.expires_after_seconds * 1000)} from its due instant`],
    task.tolerance_seconds !== undefined && ["Tolerance", task.tolerance_seconds === 0 ? "none" : `called up to ${span(task.tolerance_seconds * 1000)} later, at a shared second`],
    task.priority !== undefined && ["Priority", task.priority],
    ["Changed", instant(task.updated_at)],
    task.changed_by && ["By a caller last", el("code", {}, task.changed_by)],
  ]);
}

// An URL of a callback is no link: to follow it would be to call it.
// What its business or its timer fills in is marked. Nothing is, where that is not known.
export function taskCallback({ callback: own, effective_callback: called }) {
  const callback = called ?? own;
  if (callback === null) return el("p", { class: "quiet" }, "It is left to its business.");
  const { headers = {}, attributes = {}, ...members } = callback;
  const others = Object.fromEntries(Object.entries(headers).filter(([name, value]) => own?.headers?.[name] !== value));
  return facts([
    ...Object.entries(members).map(([name, value]) => [name, value === null ? leftToBusiness() : [el("code", {}, String(value)), own?.[name] !== value && [" ", filledIn()]]]),
    lines("headers", own === null ? {} : own.headers ?? {}),
    lines("headers filled in", others),
    lines("attributes", attributes),
  ]);
}

function filledIn() {
  return el("span", { class: "quiet" }, "filled in");
}

export function lastAnswer({ answer }) {
  return facts([
    ["At", instant(answer.at, { milliseconds: true })],
    ["Status", String(answer.status_code)],
    lines("headers", answer.headers),
    ["body", el("pre", {}, answer.body)],
    !answer.is_whole && ["Left out", "the rest of the body"],
  ]);
}

function lines(what, members) {
  const said = Object.entries(members).map(([name, value]) => el("div", {}, el("code", {}, `${name}: ${value}`)));
  return said.length > 0 && [what, said];
}

// A notice of several missed runs is one of their timer.
function isTimer(id) {
  return /^[0-9]+$/.test(id);
}

function leftToBusiness() {
  return el("span", { class: "quiet" }, "left to its business");
}

function said(members) {
  return Object.entries(members).map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(", ") : value}`).join(" · ");
}
