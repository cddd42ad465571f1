// The time until an instant, updated each second.

import { nowMs } from "./clock.js";
import { el } from "./elements.js";
import { span } from "./instants.js";
import { repeatedly } from "./refresh.js";

const EVERY_MS = 1000;

export function countdown(text) {
  return el("span", { class: "countdown", role: "timer", "data-until": text }, remaining(text));
}

// Keeps the countdowns in `place` going until `signal` ends it.
export function ticking(place, signal) {
  return repeatedly(EVERY_MS, signal, () => {
    for (const element of place.querySelectorAll("[data-until]")) element.textContent = remaining(element.dataset.until);
  });
}

function remaining(text) {
  const seconds = Math.ceil((Date.parse(text) - nowMs()) / 1000);
  if (seconds === 0) return "now";
  return seconds > 0 ? `in ${span(seconds * 1000)}` : `due for ${span(-seconds * 1000)}`;
}
