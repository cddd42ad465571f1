// What a place shows when there is nothing to show: not yet, not at all, or not to this viewer.

import { el } from "./elements.js";
import { Problem } from "./service.js";

const NO_TYPE = "about:blank"; // RFC 9457: the status says it all

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
    known && !["", NO_TYPE].includes(error.type) && el("p", { class: "quiet" }, error.type, error.field && ` · ${error.field}`),
  );
}
