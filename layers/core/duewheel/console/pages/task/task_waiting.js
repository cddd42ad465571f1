// Why a task is not called yet, as a sentence.

import { countdown } from "../../parts/countdown.js";
import { el } from "../../parts/elements.js";
import { instant, written } from "../../parts/instants.js";

const REASONS = {
  paused: "its business or its flow key is paused.",
  rate: "its business has reached its calls a second.",
  concurrency: "its business has too many calls under way.",
  "flow-key": "its flow key has reached a limit, or earlier tasks of it come first.",
  overlap: "an earlier run of its timer is pending.",
  "slow-lane": "no notifier of the slow lane has begun it.",
  retry: "its last attempt failed.",
  unknown: "the reason could not be read.",
};
const STAGES = {
  dispatch: "the scheduler has not come to its second.",
  notifier: "no notifier has begun its page.",
  place: "it got a place among other tasks.",
  sweep: "its message was lost; the sweep sends it again.",
};

// The same in an outcome: plain text.
export function waitingText(found) {
  if (found.reason === "open-breaker") return `its host ${found.host} keeps failing and is not called. A probe is due ${written(found.until)}.`;
  return REASONS[found.reason] ?? STAGES[found.stage] ?? found.reason;
}

export function waiting({ waiting: found }) {
  if (!found) return null;
  return el("p", { class: "waiting", "data-key": "waiting" }, sentence(found), found.expected_at && [" It is expected ", instant(found.expected_at, { milliseconds: true }), ", ", countdown(found.expected_at), "."]);
}

function sentence(found) {
  if (found.reason === "calling") return ["It is being called: a notifier has it", found.since && [" since ", instant(found.since)], "."];
  if (found.reason === "running") return ["Its receiver works on it", found.since && [" since ", instant(found.since)], found.until && [", and has to report the end by ", instant(found.until), ", ", countdown(found.until)], "."];
  if (found.reason === "paused" && found.until) return ["It is paused", found.since && [" since ", instant(found.since)], ", until it is resumed."];
  return ["It waits: ", why(found)];
}

function why({ reason, stage, host, until }) {
  if (reason === "open-breaker") return ["its host ", el("code", {}, host ?? "–"), " keeps failing and is not called.", until && [" A probe is due ", instant(until), "."]];
  if (reason === "backlog") return ["there is a backlog; ", STAGES[stage] ?? stage];
  return REASONS[reason] ?? reason;
}
