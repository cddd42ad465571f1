// The first page, which may be left open: what is wrong now, what runs, the last hour and the next, the latest deaths.

import { el, fill } from "../../parts/elements.js";
import { show } from "../../parts/refresh.js";
import { loading, problem } from "../../parts/states.js";
import { ageing, ages, watched } from "./overview_age.js";
import { businessesPart } from "./overview_businesses.js";
import { deathsPart } from "./overview_deaths.js";
import { figures } from "./overview_figures.js";
import { hoursPart } from "./overview_hours.js";
import { readBusinesses, readWheel } from "./overview_read.js";
import { troublesPart } from "./overview_troubles.js";

const WHEEL_EVERY_MS = 10_000;
const BUSINESSES_EVERY_MS = 20_000;

export async function overviewPage({ place, signal }) {
  const [age, wrong, numbers, hours, deaths, businesses] = Array.from({ length: 6 }, () => el("div"));
  const pointing = { picked: null, hovered: null, redraw: () => draw() };
  const parts = [
    watched({ name: "Wheel", everyMs: WHEEL_EVERY_MS, signal, read: () => readWheel(signal), changed: () => draw() }),
    watched({ name: "Businesses", everyMs: BUSINESSES_EVERY_MS, signal, read: () => readBusinesses(signal), changed: () => draw() }),
  ];
  const [wheel, found] = parts.map(({ state }) => state);
  const draw = () => {
    show(age, ages(parts));
    show(wrong, troublesPart(wheel, found));
    show(numbers, figures(wheel, found));
    show(hours, hoursPart(wheel, found, pointing));
    show(deaths, shown(found, deathsPart));
    show(businesses, shown(found, businessesPart));
  };
  fill(place, el("div", { class: "head" }, el("h1", {}, "Overview"), age), wrong, numbers, hours, deaths, businesses);
  draw();
  await Promise.all([...parts.map(({ run }) => run()), ageing(age, parts, signal)]);
}

// What was known last stays while a later reading fails; the ages and the first part say that it is old.
function shown({ answer, problem: wrong }, part) {
  if (answer !== null) return part(answer);
  return wrong === null ? loading() : problem(wrong);
}
