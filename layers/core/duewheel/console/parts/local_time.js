// Instants as the viewer types them, in their own zone, and as the service takes them.

import { written } from "./instants.js";
import { Problem } from "./service.js";

// What a `datetime-local` control says, in UTC; "" where it says nothing.
export function instantOf(control) {
  if (control.validity.badInput) throw new Problem(422, { field: control.name, title: "The instant is not complete", detail: "Give date and time, or neither." });
  return control.value === "" ? "" : new Date(control.value).toISOString();
}

// An instant of the service as such a control takes it; "" where it is none.
export function localOf(text) {
  return Number.isNaN(Date.parse(text)) ? "" : written(text).replace(" ", "T");
}
