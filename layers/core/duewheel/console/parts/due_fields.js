// When something is due: so long from now, or at an instant of the viewer's zone.

import { el } from "./elements.js";
import { choice, field, instantField } from "./form.js";
import { viewersZone } from "./instants.js";
import { instantOf } from "./local_time.js";

const UNITS = [["1", "seconds"], ["60", "minutes"], ["3600", "hours"], ["86400", "days"]];

// {element, members}: what is shown, and what it says as members of a request.
export function dueFields() {
  const amount = el("input", { type: "number", min: "0", step: "any", value: "5", required: true });
  const fields = {
    in: [field({ name: "delay_seconds", label: "In", control: amount }), choice("unit", "Unit", UNITS, "60")],
    at: [instantField("due_at", "At", "", { hint: `Time of ${viewersZone()}` })],
  };
  const at = fields.at[0].querySelector("input");
  at.required = true;
  const how = choice("due", "Due", [["in", "after a delay"], ["at", "at an instant"]]);
  const chosen = how.querySelector("select");
  const unit = fields.in[1].querySelector("select");
  const choose = () => Object.entries(fields).forEach(([name, own]) => own.forEach((place) => offer(place, name === chosen.value)));
  chosen.addEventListener("change", choose);
  choose();
  const members = () => (chosen.value === "in" ? { delay_seconds: secondsOf(amount, unit) } : { due_at: instantOf(at) });
  return { element: el("div", { class: "due" }, how, fields.in, fields.at), members };
}

// A hidden field must not be required.
function offer(place, isOffered) {
  place.hidden = !isOffered;
  for (const control of place.querySelectorAll("input, select")) control.disabled = !isOffered;
}

function secondsOf(amount, unit) {
  return amount.value === "" ? null : Number(amount.value) * Number(unit.value);
}
