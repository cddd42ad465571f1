// What has become of a task, in the order in which it came.

import { countdown } from "../../parts/countdown.js";
import { el } from "../../parts/elements.js";
import { instant, span } from "../../parts/instants.js";
import { badge } from "../../parts/table.js";

const HISTORY_MAX = 10;
const KINDS = { delivered: "good", retry: "warn", stop: "bad" };

export function timeline(task) {
  return el("ol", { class: "timeline" }, created(task), forgotten(task), task.history.map((attempt, index) => tried(task, attempt, index)), ahead(task), settled(task), ends(task));
}

function created({ created_at }) {
  return step("created", created_at, "Created");
}

function forgotten({ history, attempts }) {
  const isMore = history.length === HISTORY_MAX && attempts > HISTORY_MAX;
  return isMore && step("forgotten", null, el("span", { class: "quiet" }, `The first ${attempts - HISTORY_MAX} attempts; the last ${HISTORY_MAX} are kept`));
}

// Attempts are counted from the latest redrive on.
function tried({ attempts, history }, attempt, index) {
  const number = attempts - (history.length - 1 - index);
  const details = [
    attempt.status_code !== null && `status ${attempt.status_code}`,
    `${span(attempt.lateness_ms)} late`,
    `took ${span(attempt.duration_ms)}`,
  ].filter(Boolean).join(" · ");
  return step(
    `attempt ${number}`,
    attempt.at,
    [number > 0 ? `Attempt ${number} ` : "Attempt before the redrive ", badge(attempt.outcome, KINDS[attempt.outcome])],
    el("span", { class: "quiet" }, details),
    attempt.note && el("span", { class: "note" }, attempt.note),
  );
}

function ahead({ status, parked, next_at }) {
  if (status !== "pending") return null;
  if (parked) return step("ahead", null, ["Parked ", el("span", { class: "quiet" }, "until its business is resumed")]);
  return step("ahead", next_at, ["Next attempt ", countdown(next_at)]);
}

function settled({ settled_at, status, reason }) {
  return settled_at && step("settled", settled_at, ["Settled ", badge(status)], reason && el("span", { class: "quiet" }, reason));
}

function ends({ expires_at }) {
  return expires_at && step("ends", expires_at, el("span", { class: "quiet" }, "The record may be deleted"));
}

function step(key, at, what, ...more) {
  return el("li", { "data-key": key }, el("span", { class: "at" }, at && instant(at, { milliseconds: true })), el("span", { class: "what" }, el("span", {}, what), more));
}
