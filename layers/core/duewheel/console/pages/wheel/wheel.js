// The wheel: the pointers, the forecast, and the outcome of past tasks.

import { el, fill } from "../../parts/elements.js";
import { choice, form, text } from "../../parts/form.js";
import { instant, span } from "../../parts/instants.js";
import { repeatedly, show } from "../../parts/refresh.js";
import { go, link } from "../../parts/router.js";
import { call } from "../../parts/service.js";
import { loading, problem } from "../../parts/states.js";
import { badge, facts } from "../../parts/table.js";
import { auditPart } from "./wheel_audit.js";
import { forecast } from "./wheel_forecast.js";
import { openPlaces } from "./wheel_open_places.js";
import { past } from "./wheel_past.js";
import { lastDay } from "./wheel_statistics.js";

const POINTERS_EVERY_MS = 2000;
const STATISTICS_EVERY_MS = 60_000; // they are kept by the minute
const HOURS = [["1", "1 hour"], ["6", "6 hours"], ["24", "24 hours"]];
const BEHIND_SECONDS = 10;

let hasJustChosen = false;

export async function wheelPage({ place, query, signal }) {
  const asked = { ...query, hours: HOURS.some(([hours]) => hours === query.hours) ? Number(query.hours) : 1 };
  const [pointers, names, hours] = [el("div"), el("datalist", { id: "wheel-businesses" }), el("div")];
  const filter = filterOf(asked, names);
  const now = { shown: null };
  fill(place, el("h1", {}, "Wheel"), pointers, filter, hours, auditPart(() => now.shown?.now, signal));
  if (hasJustChosen) filter.querySelector("button").focus();
  hasJustChosen = false;
  await Promise.all([
    refreshed(POINTERS_EVERY_MS, signal, () => wheelNow(signal), (state) => {
      now.shown = state.answer;
      show(pointers, wheelView(state, asked));
    }),
    refreshed(STATISTICS_EVERY_MS, signal, () => lastDay(asked, signal), (state) => {
      show(names, (state.answer?.rows ?? []).map(({ name }) => el("option", { value: name })));
      show(hours, past(state, asked));
    }),
  ]);
}

// Asks again and again, and draws what is known: the last answer, and what went wrong since. What is
// pointed at in a chart is kept with it, and drawn at once.
async function refreshed(milliseconds, signal, ask, draw) {
  const state = { answer: null, problem: null, picked: null, hovered: null, redraw: () => draw(state) };
  draw(state);
  await repeatedly(milliseconds, signal, async () => {
    try {
      state.answer = await ask();
      state.problem = null;
    } catch (error) {
      if (signal.aborted) return;
      state.problem = error;
    }
    if (!signal.aborted) draw(state);
  });
}

async function wheelNow(signal) {
  return (await call("GET", ["wheel"], { signal })).members;
}

function wheelView(state, asked) {
  const { answer: wheel, problem: wrong } = state;
  if (wheel === null) return [wrong === null ? loading() : problem(wrong)];
  return [wrong !== null && problem(wrong), pointersOf(wheel, wrong !== null), openPlaces(wheel), forecast(state, asked)];
}

function pointersOf(wheel, isOld) {
  return facts([
    [isOld ? "Last seen" : "Now", instant(wheel.now)],
    ["Time pointer", [...pointer(wheel.time_pointer), " ", wheel.time_pointer.lag_seconds >= BEHIND_SECONDS && badge("behind", "warn")]],
    ["Sweep pointer", pointer(wheel.sweep_pointer)],
    ["Leader", wheel.leader === null ? el("span", { class: "quiet" }, "none at this moment") : el("code", {}, wheel.leader)],
  ]);
}

function pointer({ at, lag_seconds: lag }) {
  return [instant(at), ` · lag ${lag === 0 ? "0 s" : span(lag * 1000)}`];
}

function filterOf(asked, names) {
  const fields = [
    text("biz_type", "Business", asked.biz_type ?? "", { placeholder: "all within reach", list: "wheel-businesses" }),
    choice("hours", "Looking back", HOURS, String(asked.hours)),
    names,
  ];
  const chosen = ({ biz_type, hours }) => {
    const query = { biz_type, hours: hours === "1" ? null : hours };
    hasJustChosen = link(["wheel"], query) !== location.hash;
    go(["wheel"], query);
  };
  return form(fields, "Show", chosen, { class: "filters wheel-filter", "aria-label": "What is shown" });
}
