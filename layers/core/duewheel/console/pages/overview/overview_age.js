// Reads again and again, and says how old what is shown is. Ages are by the viewer's own clock: what the service says of
// the time, and a correction of the machine's, do not matter.

import { el } from "../../parts/elements.js";
import { span } from "../../parts/instants.js";
import { refusalText } from "../../parts/outcomes.js";
import { repeatedly } from "../../parts/refresh.js";

const EVERY_MS = 1000;
const OLD_TIMES = 3; // so many readings have failed, or have not come

// state: {answer, problem, atMs, isRefused}: the last answer, what went wrong since, when the answer came, and whether it
// is not for this viewer. Then it is not read again.
export function watched({ name, everyMs, signal, read, changed }) {
  const state = { answer: null, problem: null, atMs: null, isRefused: false };
  const over = new AbortController();
  const look = async () => {
    try {
      state.answer = await read();
      state.problem = null;
      state.atMs = performance.now();
    } catch (error) {
      if (signal.aborted) return;
      state.problem = error;
      state.isRefused = error.status === 403;
      if (state.isRefused) over.abort();
    }
    if (!signal.aborted) changed();
  };
  return { name, state, everyMs, run: () => repeatedly(everyMs, AbortSignal.any([signal, over.signal]), look) };
}

export function ages(parts) {
  return el("p", { class: "ages quiet" }, parts.map((part) => [el("span", { "data-age": part.name, class: isOld(part) && "old" }, said(part)), " "]));
}

// Keeps the ages going. They are hidden with the page, and so is this.
export function ageing(place, parts, signal) {
  return repeatedly(EVERY_MS, signal, () => {
    for (const part of parts) {
      const element = place.querySelector(`[data-age="${part.name}"]`);
      if (element === null) continue;
      if (element.textContent !== said(part)) element.textContent = said(part);
      element.classList.toggle("old", isOld(part));
    }
  });
}

function said({ name, state: { answer, atMs, problem, isRefused } }) {
  if (isRefused) return `${name}: not for you to read`;
  const failed = problem === null ? "" : ` (${refusalText(problem)})`;
  if (answer === null) return problem === null ? `${name}: loading …` : `${name}: not read${failed}`;
  const seconds = Math.floor((performance.now() - atMs) / 1000);
  return `${name} read ${seconds === 0 ? "now" : `${span(seconds * 1000)} ago`}${failed}`;
}

function isOld({ state: { answer, atMs, problem, isRefused }, everyMs }) {
  if (isRefused) return false;
  if (answer === null) return problem !== null;
  return problem !== null || performance.now() - atMs > OLD_TIMES * everyMs;
}
