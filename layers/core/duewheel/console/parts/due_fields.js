// When something is due: so long from now, or at an instant of the viewer's zone.

import { el } from "./elements.js";
import { choice, field, instantField } from "./form.js";
import { viewersZone } from "./instants.js";
import { instantOf } from "./local_time.js";

const UNITS = [["1", "seconds"], ["60", "minutes"], ["3600", "hours"], ["86400", "days"]];

const AT = ["at", "at an instant"];

// {element, members}: what is shown, and what it says as members of a request.
export function dueFields() {
  return chosen("delay_seconds", "In", [["in", "after a delay"], AT], (_, seconds) => ({ delay_seconds: seconds }));
}

// The same for many tasks, each with an instant of its own.
export function shiftFields() {
  const members = (how, seconds) => ({ shift_seconds: how === "earlier" ? -seconds : seconds });
  return chosen("shift_seconds", "By", [["later", "later than it is"], ["earlier", "earlier than it is"], AT], members);
}

function chosen(name, label, hows, relative) {
  const amount = el("input", { type: "number", min: "0", step: "any", value: "5", required: true });
  const span = [field({ name, label, control: amount }), choice("unit", "Unit", UNITS, "60")];
  const instant = instantField("due_at", "At", "", { hint: `Time of ${viewersZone()}` });
  const at = instant.querySelector("input");
  at.required = true;
  const how = choice("due", "Due", hows);
  const chosen = how.querySelector("select");
  const unit = span[1].querySelector("select");
  const choose = () => {
    for (const place of span) offer(place, chosen.value !== "at");
    offer(instant, chosen.value === "at");
  };
  chosen.addEventListener("change", choose);
  choose();
  const members = () => (chosen.value === "at" ? { due_at: instantOf(at) } : relative(chosen.value, secondsOf(amount, unit)));
  return { element: el("div", { class: "due" }, how, span, instant), members };
}

// A hidden field must not be required.
function offer(place, isOffered) {
  place.hidden = !isOffered;
  for (const control of place.querySelectorAll("input, select")) control.disabled = !isOffered;
}

function secondsOf(amount, unit) {
  return amount.value === "" ? null : Number(amount.value) * Number(unit.value);
}
