// A timer: what it says, what has come of it, what is ahead, and who changed it.

import { changesTable } from "../../parts/changes.js";
import { el, fill } from "../../parts/elements.js";
import { repeatedly } from "../../parts/refresh.js";
import { link } from "../../parts/router.js";
import { section } from "../../parts/section.js";
import { call } from "../../parts/service.js";
import { upcomingTable } from "../../parts/upcoming.js";
import { Actions } from "./timer_actions.js";
import { counters, head, settings } from "./timer_settings.js";
import { runsTable } from "./timer_runs.js";
import { isUnknownTimer, unknownTimer } from "./timer_unknown.js";

const EVERY_MS = 5000;
const LATEST_RUNS = 10;

export async function timerPage({ place, parameters: { id }, signal }) {
  const path = ["timers", id];
  const read = async (what, query) => (await call("GET", [...path, what], { query, signal })).members;
  const part = (title, load) => section(title, EVERY_MS, signal, load);
  const actions = new Actions(path, signal, () => refresh());
  let known = null; // null where there is no such timer, and until it is known
  const timer = part(null, async () => {
    try {
      known = await call("GET", path, { signal });
    } catch (error) {
      if (!isUnknownTimer(error)) throw error;
      known = null; // deleted, perhaps while it was looked at
      return unknownTimer(id);
    }
    return definition(known, actions);
  });
  const living = [
    part("Ahead", async () => aheadOf(known.members, (await read("upcoming")).upcoming)),
    part("Runs", async () => latest((await read("runs", { limit: LATEST_RUNS })).tasks, path)),
  ];
  const changes = part("Changes", async () => {
    try {
      return changesTable((await read("changes")).changes);
    } catch (error) {
      if (known !== null || !isUnknownTimer(error)) throw error;
      changes.whole.hidden = true; // of a deleted timer they are kept for a while
    }
  });
  fill(place, [timer, ...living, changes].map(({ whole }) => whole));

  const refresh = async () => {
    await timer.now();
    for (const { whole } of living) whole.hidden = known === null;
    await Promise.all([...(known === null ? [] : living), changes].map((one) => one.now()));
  };
  await repeatedly(EVERY_MS, signal, refresh);
}

function definition({ members, text, etag }, actions) {
  return [head(members), actions.buttons(members, etag), counters(members), el("h2", {}, "Settings"), el("div", { class: "timer-settings" }, settings(members, text))];
}

function aheadOf(timer, upcoming) {
  const notes = [
    !timer.enabled && "It is disabled: none of these is called unless it is enabled before.",
    timer.jitter_seconds > 0 && `Each is put off by up to ${timer.jitter_seconds} s.`,
    timer.tolerance_seconds > 0 && `Each is called at a shared second, up to ${timer.tolerance_seconds} s later.`,
  ];
  return [notes.filter(Boolean).map((note) => el("p", { class: "hint", "data-key": note }, note)), upcomingTable(upcoming, timer.timezone)];
}

function latest(tasks, path) {
  return [runsTable(tasks, "It has not run yet."), tasks.length > 0 && el("p", { "data-key": "all" }, el("a", { href: link([...path, "runs"]) }, "All runs"))];
}
