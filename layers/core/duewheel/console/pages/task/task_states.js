// The ways from a list of tasks to those of one status, with all else that is looked for kept.

import { el } from "../../parts/elements.js";
import { icon } from "../../parts/icons.js";
import { link } from "../../parts/router.js";

const STATES = [["pending", "Pending"], ["dead", "Dead"], ["delivered", "Delivered"], ["cancelled", "Cancelled"], ["expired", "Expired"], ["", "All"]];

export function taskStates({ status = "", cursor, find, ...query }) {
  const way = ([state, name]) => el("a", { href: link(["tasks"], { ...query, status: state }), "aria-current": state === status ? "true" : null }, icon(state), name);
  return el("nav", { class: "tabs states", "aria-label": "By status" }, STATES.map(way));
}
