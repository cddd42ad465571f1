// What the pages of a timer show where there is no such timer.

import { el } from "../../parts/elements.js";
import { link } from "../../parts/router.js";
import { Problem } from "../../parts/service.js";
import { empty } from "../../parts/states.js";

export function isUnknownTimer(error) {
  return error instanceof Problem && error.type === "unknown-timer";
}

export function unknownTimer(id) {
  return [
    el("h1", {}, "Timer"),
    empty(
      "There is no such timer.",
      el("p", {}, el("code", {}, id), " is not the id of a timer. It may have been deleted, and a timer of a business that you may not read is not there for you."),
      el("p", {}, el("a", { href: link(["timers"]) }, "Look for timers")),
    ),
  ];
}
