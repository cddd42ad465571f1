// The attempts at a task, in the order in which they were made, and the next one.

import { countdown } from "../../parts/countdown.js";
import { el } from "../../parts/elements.js";
import { instant, span } from "../../parts/instants.js";
import { badge } from "../../parts/table.js";

const HISTORY_MAX = 10;

export function attempts(task) {
  const next = ahead(task);
  if (task.history.length === 0 && !next) return el("p", { class: "quiet" }, "None was made.");
  return el("ol", { class: "attempts" }, forgotten(task), task.history.map((attempt, index) => tried(task, attempt, index)), next);
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
    attempt.host,
  ].filter(Boolean).join(" · ");
  return step(
    `attempt ${number}`,
    attempt.at,
    [number > 0 ? `Attempt ${number} ` : "Attempt before the redrive ", badge(attempt.outcome)],
    el("span", { class: "quiet" }, details),
    attempt.note && el("span", { class: "note" }, attempt.note),
  );
}

function ahead({ status, parked, paused, next_at }) {
  if (status !== "pending") return null;
  if (parked) return step("ahead", null, ["Parked ", el("span", { class: "quiet" }, "until its business is resumed")]);
  if (paused) return step("ahead", next_at, ["Called if nobody resumes it ", countdown(next_at)]);
  return step("ahead", next_at, ["Next attempt ", countdown(next_at)]);
}

function step(key, at, what, ...more) {
  return el("li", { "data-key": key }, el("span", { class: "at" }, at && instant(at, { milliseconds: true })), el("span", { class: "what" }, el("span", {}, what), more));
}
