// An instant that is typed on the clocks of the viewer's zone, and sent in UTC.

import { text } from "./form.js";
import { viewersZone, written } from "./instants.js";

export function instantBox(name, label, value) {
  const shown = value ? written(value).replace(" ", "T") : "";
  return text(name, label, shown, { type: "datetime-local", step: 1, hint: `in ${viewersZone()}, your zone` });
}

// What was typed as RFC 3339; null where nothing was.
export function typedInstant(value) {
  return value === "" ? null : new Date(value).toISOString();
}
