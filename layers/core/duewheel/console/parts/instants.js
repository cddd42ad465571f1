// Instants and spans as people read them: in the viewer's zone, with the service's own text at hand.

import { el } from "./elements.js";

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function viewersZone() {
  return ZONE;
}

// An instant of an answer (RFC 3339) as an element; `null` where there is none.
export function instant(text, { zone = ZONE, milliseconds = false } = {}) {
  if (!text) return el("span", { class: "quiet" }, "–");
  return el("time", { datetime: text, title: text }, written(text, zone, milliseconds));
}

export function written(text, zone = ZONE, milliseconds = false) {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit",
    hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
    ...(milliseconds && { fractionalSecondDigits: 3 }),
  }).formatToParts(new Date(text));
  const by = Object.fromEntries(parts.map(({ type, value }) => [type, value]));
  const fraction = milliseconds ? `.${by.fractionalSecond}` : "";
  return `${by.year}-${by.month}-${by.day} ${by.hour}:${by.minute}:${by.second}${fraction}`;
}

// 90500 → "1 min 30.5 s"; at most two units, the larger ones exact enough to act on.
export function span(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  if (milliseconds < 0) return `-${span(-milliseconds)}`;
  if (milliseconds < 1000) return `${milliseconds} ms`;
  if (milliseconds < 60_000) return `${+(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.floor(milliseconds / 1000);
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => seconds >= size);
  const [[large, name], next] = [parts[first], parts[first + 1]];
  const rest = next ? Math.floor((seconds % large) / next[0]) : 0;
  return `${Math.floor(seconds / large)} ${name}${rest ? ` ${rest} ${next[1]}` : ""}`;
}
