// Who is told what becomes of tasks, as JSON: in a field, and shown.

import { el } from "./elements.js";
import { area } from "./form.js";
import { Problem } from "./service.js";

const EXAMPLE = '{"outcomes": ["dead", "expired"], "callback": {"url": "https://example.com/told"}}';

export function onOutcomeField(value, placeholder) {
  return area("on_outcome", "Told of outcomes (JSON)", text(value), { rows: 3, hint: EXAMPLE, placeholder });
}

export function onOutcomeOf(typed) {
  if (typed.trim() === "") return null;
  try {
    return JSON.parse(typed);
  } catch (error) {
    throw new Problem(422, { field: "on_outcome", title: "This is no JSON", detail: `This is no JSON: ${error.message}` });
  }
}

export function shownOnOutcome(value) {
  return value === null ? "nobody" : el("code", {}, text(value));
}

// As a request says it: without the members that an answer has as null.
function text(value) {
  if (value === null) return "";
  const callback = Object.fromEntries(Object.entries(value.callback).filter(([, member]) => member !== null));
  return JSON.stringify({ ...value, callback });
}
