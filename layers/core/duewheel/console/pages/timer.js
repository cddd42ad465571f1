// A timer: what it says, what has come of it, what is ahead, and who changed it.

import { changesTable } from "../parts/changes.js";
import { el, fill } from "../parts/elements.js";
import { Live } from "../parts/live.js";
import { repeatedly } from "../parts/refresh.js";
import { link } from "../parts/router.js";
import { call } from "../parts/service.js";
import { upcomingTable } from "../parts/upcoming.js";
import { Actions } from "./timer_actions.js";
import { counters, head, settings } from "./timer_settings.js";
import { runsTable } from "./timer_runs.js";

const EVERY_MS = 5000;
const LATEST_RUNS = 10;

export async function timerPage({ place, parameters: { id }, signal }) {
  const path = ["timers", id];
  const read = (more, query) => async (signal) => (await call("GET", [...path, ...more], { query, signal })).members;
  const actions = new Actions(path, signal, () => refresh());
  const timer = new Live((signal) => call("GET", path, { signal }), (answer) => definition(answer, actions));
  const ahead = new Live(read(["upcoming"]), ({ upcoming }) => aheadOf(timer.answer.members, upcoming));
  const runs = new Live(read(["runs"], { limit: LATEST_RUNS }), ({ tasks }) => latest(tasks, path));
  const changes = new Live(read(["changes"]), (answer) => changesTable(answer.changes));
  const living = [titled("Ahead", ahead), titled("Runs", runs)];
  fill(place, timer.place, living, titled("Changes", changes));

  const refresh = async () => {
    await timer.refresh(signal);
    const isGone = timer.failure?.type === "unknown-timer"; // its changes are kept for a while
    for (const section of living) section.hidden = isGone || timer.answer === null;
    const others = isGone || timer.answer === null ? [changes] : [ahead, runs, changes];
    await Promise.all(others.map((part) => part.refresh(signal)));
  };
  await repeatedly(EVERY_MS, signal, refresh);
}

function titled(title, live) {
  return el("section", {}, el("h2", {}, title), live.place);
}

function definition({ members, text, etag }, actions) {
  return [head(members), actions.buttons(members, etag), counters(members), el("h2", {}, "Settings"), el("div", { class: "timer-settings" }, settings(members, text))];
}

function aheadOf(timer, upcoming) {
  const notes = [
    !timer.enabled && "It is disabled: none of these is called unless it is enabled before.",
    timer.jitter_seconds > 0 && `Each is put off by up to ${timer.jitter_seconds} s.`,
  ];
  return [notes.filter(Boolean).map((note) => el("p", { class: "hint", "data-key": note }, note)), upcomingTable(upcoming, timer.timezone)];
}

function latest(tasks, path) {
  return [runsTable(tasks, "It has not run yet."), tasks.length > 0 && el("p", { "data-key": "all" }, el("a", { href: link([...path, "runs"]) }, "All runs"))];
}
