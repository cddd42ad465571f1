// Instants as the viewer types them, in their own zone, and as the service takes them.

import { written } from "./instants.js";
import { Problem } from "./service.js";

// By its control, what was put there: a local time that a day has twice does not tell which of the two
// is meant, and fractions of a second are not shown.
const put = new WeakMap();

// Lets a `datetime-local` control show an instant of the service, and keep it until it is edited.
export function putInstant(control, text) {
  control.value = Number.isNaN(Date.parse(text)) ? "" : written(text).replace(" ", "T");
  put.set(control, { shown: control.value, text });
}

// The instant that such a control says, in UTC; "" where it says nothing.
export function instantOf(control) {
  if (control.validity.badInput) throw unreadable(control, "Give date and time, or neither.");
  if (control.value === "") return "";
  if (control.value === put.get(control)?.shown) return put.get(control).text;
  const typed = new Date(control.value);
  if (Number.isNaN(typed.getTime())) throw unreadable(control, "Give a year of four digits.");
  return typed.toISOString();
}

function unreadable({ name }, detail) {
  return new Problem(422, { title: "The instant cannot be read", detail, field: name });
}
