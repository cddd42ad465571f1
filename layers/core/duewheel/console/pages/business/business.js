// A business: whether it is paused, its settings, the outcome of its tasks.

import { el, fill } from "../../parts/elements.js";
import { instant, span } from "../../parts/instants.js";
import { text } from "../../parts/form.js";
import { once } from "../../parts/once.js";
import { confirmed } from "../../parts/outcomes.js";
import { link } from "../../parts/router.js";
import { section } from "../../parts/section.js";
import { call, Problem } from "../../parts/service.js";
import { empty } from "../../parts/states.js";
import { badge, facts, table } from "../../parts/table.js";
import { lane } from "./businesses.js";
import { changes } from "./business_changes.js";
import { dayByMinute } from "./business_day.js";
import { askToDelete } from "./business_delete.js";
import { businessHead } from "./business_head.js";
import { hasTasks, lastDay, limits, numbers } from "./business_numbers.js";
import { settings } from "./business_settings.js";

const STANDING_EVERY_MS = 5000;
const REST_EVERY_MS = 30_000;

export async function businessPage({ place, parameters: { name }, signal }) {
  let found = await read(name, signal); // what is refused here is the page's answer
  const progress = el("div");
  const own = section("Settings that hold", STANDING_EVERY_MS, signal, async () => holding(name, found));
  const state = section("State", STANDING_EVERY_MS, signal, async () => {
    found = await read(name, signal);
    await own.now();
    return standing(found, actions);
  });
  let counted = null;
  const pointing = { picked: null, hovered: null, redraw: () => day.draw(ofDay()) };
  const minute = { ...pointing };
  const ofDay = () => [numbers(counted, pointing), hasTasks(counted) && dayByMinute(counted, minute), el("h2", {}, "Limits and their use"), limits(found?.members, counted)];
  const day = section("The last 24 hours", REST_EVERY_MS, signal, async () => {
    counted = await lastDay(name, signal);
    return ofDay();
  });
  const kept = section("Changes", REST_EVERY_MS, signal, () => changes(name, signal));
  const actions = actionsOn({ name, progress, signal, found: () => found, anew: () => Promise.all([state.now(), kept.now()]) });
  fill(place, businessHead(name, "Overview"), progress, [state, day, own, kept].map(({ whole }) => whole));
  await Promise.all([state, day, kept].map(({ run }) => run()));
}

// `null` where nothing is known of it. Without settings it has version 0, and its tasks run by the defaults.
export async function read(name, signal) {
  try {
    return await call("GET", ["businesses", name], { signal });
  } catch (error) {
    if (error instanceof Problem && error.type === "unknown-business") return null;
    throw error;
  }
}

function standing(found, actions) {
  const isPaused = found?.members.paused ?? false;
  const paused = found?.members.paused_flow_keys ?? [];
  return [
    facts([
      ["Its tasks are", isPaused ? [badge("paused"), " parked when they fall due, until it is resumed"] : "called when they fall due"],
      found && ["Lane", lane(found.members)],
      found && ["Breakers", breakers(found.members.breakers, actions.probe)],
      found && ["Last task", found.members.last_task_at ? ["fell due or failed in the minute of ", instant(found.members.last_task_at)] : "none is counted in the last 90 days; a task is counted two minutes after it fell due"],
      found && ["The service", service(found.members.usage)],
      paused.length > 0 && ["Paused flow keys", paused.map((key) => el("div", {}, el("code", {}, key), " ", el("button", { type: "button", on: { click: () => actions.resumeKey(key) } }, "Resume it")))],
    ]),
    el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", on: { click: isPaused ? actions.resume : actions.pause } }, isPaused ? "Resume" : "Pause"),
      el("button", { type: "button", on: { click: actions.pauseKey } }, "Pause a flow key"),
      isConfigured(found) && el("button", { type: "button", class: "danger", on: { click: actions.remove } }, "Delete"),
    ),
  ];
}

export function isConfigured(found) {
  return found !== null && found.members.version > 0;
}

// What delays the tasks of all businesses.
function service({ dispatch_lag_seconds: behind, oldest_open_seconds: open }) {
  return [
    behind > 1 ? [badge("late", "warn"), ` dispatches ${span(behind * 1000)} late`] : "dispatches on time",
    open !== null && `; the sweep waits for something for ${span(open * 1000)}`,
  ];
}

function breakers(open, probe) {
  if (open.length === 0) return "none open: no host is blocked";
  const button = ({ host }) => el("button", { type: "button", on: { click: () => probe(host) } }, "Probe now");
  return table("Breakers", [...BREAKERS, ["", button]], open, { key: ({ host }) => host });
}

const BREAKERS = [
  ["Blocked host", ({ host }) => el("code", {}, host)],
  ["Since", ({ since }) => instant(since)],
  ["Until a probe", ({ until }) => instant(until)],
];

function holding(name, found) {
  if (isConfigured(found)) return settings(found.members);
  const configure = el("a", { href: link(["businesses", name, "edit"]) }, "Configure it");
  return empty("It has no settings of its own; its tasks run by the defaults of the service.", el("p", {}, configure));
}

// Pause and resume apply whether or not the settings were changed meanwhile: without `If-Match`.
function actionsOn({ name, progress, signal, found, anew }) {
  const steer = (how, said) => async () => {
    await call("POST", ["businesses", name, how]);
    await anew();
    return said;
  };
  const steerKey = (flowKey, value, said) => async () => {
    await call("PUT", ["businesses", name], { body: { paused_flow_keys: { [flowKey]: value } } });
    await anew();
    return said;
  };
  const pauseKey = () => {
    const field = text("flow_key", "Flow key", "", { required: true });
    const pause = () => {
      const flowKey = field.querySelector("input").value;
      return steerKey(flowKey, true, `${flowKey} is paused.`)();
    };
    return confirmed({ title: `Pause a flow key of ${name}?`, text: PAUSED, verb: "Pause", fields: [field] }, pause);
  };
  const resumeKey = (flowKey) => confirmed({ title: `Resume ${flowKey}?`, text: KEY_RESUMED, verb: "Resume" }, steerKey(flowKey, null, `${flowKey} is resumed.`));
  const probe = (host) => confirmed({ title: `Probe ${host} now?`, text: PROBED, verb: "Probe it" }, async () => {
    await call("POST", ["businesses", name, "probe"], { body: { host } });
    await anew();
    return `The next task of ${name} that is due tries ${host}.`;
  });
  return {
    probe,
    pauseKey: once(pauseKey),
    resumeKey,
    pause: once(() => confirmed({ title: `Pause ${name}?`, text: PAUSED, verb: "Pause" }, steer("pause", `${name} is paused.`))),
    resume: once(() => confirmed({ title: `Resume ${name}?`, text: resumed(found()?.members), verb: "Resume" }, steer("resume", `${name} is resumed.`))),
    remove: once(() => askToDelete({ name, etag: found()?.etag, progress, signal })),
  };
}

const PAUSED = "Within five seconds, what falls due is parked instead of called; calls under way are finished. Tasks are still taken, changed and cancelled. "
  + "Parked tasks stay pending, however long the pause lasts, and can be cancelled or changed at any time; grace and age that a task was given go on counting.";

const PROBED = "The next due call to this host is made, whatever the breaker's wait, and finds out whether the host works again. If no task is due, run one by hand.";

const KEY_RESUMED = "What is parked of this key is called in the order in which it fell due, at the rate of the key or of the business.";

function resumed(business) {
  const pace = business?.calls_per_second ? `at its ${business.calls_per_second} calls a second` : "up to a thousand in a second, since it has no limit of calls a second";
  return `What is parked is called in the order in which it fell due, ${pace}. What falls due meanwhile is called as well. A task whose grace ran out is expired.`;
}
