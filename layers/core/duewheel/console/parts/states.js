// What a place shows when there is nothing to show: not yet, not at all, or not to this viewer.

import { el } from "./elements.js";
import { Problem } from "./service.js";

export function loading() {
  return el("p", { class: "quiet", "aria-busy": "true" }, "Loading …");
}

export function empty(what, ...more) {
  return el("div", { class: "empty" }, el("p", {}, what), more);
}

export function problem(error) {
  const known = error instanceof Problem;
  return el(
    "div",
    { class: "problem", role: "alert" },
    el("h2", {}, known ? error.title : "The console failed"),
    el("p", {}, error.message),
    known && error.type !== "" && el("p", { class: "quiet" }, error.type, error.field && ` · ${error.field}`),
  );
}
