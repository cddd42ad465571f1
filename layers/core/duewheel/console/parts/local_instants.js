// Instants that the viewer types: in the viewer's zone on the page, in UTC towards the service.

import { written } from "./instants.js";

// What an `<input type="datetime-local">` shows of an instant of a request.
export function typed(text) {
  return text && !Number.isNaN(Date.parse(text)) ? written(text).replace(" ", "T") : "";
}

export function meant(typedText) {
  return typedText ? new Date(typedText).toISOString() : "";
}
