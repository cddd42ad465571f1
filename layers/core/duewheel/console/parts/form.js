// Forms: labelled fields, and the service's refusal shown at the field that it names.

import { el, fill } from "./elements.js";
import { instantOf, putInstant } from "./local_time.js";
import { refusalText } from "./outcomes.js";
import { Problem } from "./service.js";

// A labelled control. `name` is its member of the request, as in a refusal.
export function field({ name, label, hint, control }) {
  const id = `field-${name}`;
  control.id = id;
  control.name = name;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return el("div", { class: "field", "data-field": name }, el("label", { for: id }, label), control, hint && el("p", { class: "hint", id: `${id}-hint` }, hint));
}

export function text(name, label, value = "", { hint, ...more } = {}) {
  return field({ name, label, hint, control: el("input", { type: "text", autocomplete: "off", spellcheck: "false", value, ...more }) });
}

export function area(name, label, value = "", { hint, ...more } = {}) {
  return field({ name, label, hint, control: el("textarea", { spellcheck: "false", value, ...more }) });
}

// `value` is an instant of the service; it is shown and typed in the viewer's zone.
export function instantField(name, label, value, { hint } = {}) {
  const control = el("input", { type: "datetime-local", step: 1 });
  putInstant(control, value);
  return field({ name, label, hint, control });
}

// options: ["pending", …] or [["", "any"], …]
export function choice(name, label, options, value = "", { hint, ...more } = {}) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  const control = el("select", more, pairs.map(([given, said]) => el("option", { value: given, selected: given === value }, said)));
  return field({ name, label, hint, control });
}

export function box(name, label, checked = false) {
  const control = el("input", { type: "checkbox", name, checked });
  return el("div", { class: "field", "data-field": name }, el("label", { class: "box" }, control, " ", label));
}

// `submit` gets the values by name. What it throws is shown.
export function form(fields, verb, submit, { also = [], ...attributes } = {}) {
  const general = el("div", { role: "alert" });
  const button = el("button", { class: "primary" }, verb);
  const send = async (event) => {
    event.preventDefault();
    forget(element, general);
    button.disabled = true;
    try {
      await submit(values(element));
    } catch (error) {
      refused(element, general, error);
    } finally {
      button.disabled = false;
    }
  };
  const edited = ({ target }) => forgetAt(target.closest("[data-field]"));
  const element = el("form", { ...attributes, novalidate: true, on: { submit: send, input: edited } }, fields, general, el("div", { class: "buttons" }, button, also));
  return element;
}

// Texts; of a box true or false, of an instant the instant in UTC. What is disabled is not of the form.
export function values(form) {
  const named = [...form.elements].filter((control) => control.name && !control.disabled);
  return Object.fromEntries(named.map((control) => [control.name, valueOf(control)]));
}

function valueOf(control) {
  if (control.type === "checkbox") return control.checked;
  return control.type === "datetime-local" ? instantOf(control) : control.value.trim();
}

function refused(form, general, error) {
  const noted = notedAt(form, error);
  if (noted === null) return fill(general, el("p", { class: "problem" }, refusalText(error)));
  noted.control.focus();
}

// Says a refusal at the field that it names: {control, note}; null where it names none of the form's.
export function notedAt(form, error) {
  const place = error instanceof Problem && error.field ? placeOf(form, error.field) : null;
  if (place === null) return null;
  for (let around = place.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
  const control = place.querySelector("input, select, textarea");
  const note = el("p", { class: "field-problem", role: "alert" }, error.message);
  control.setAttribute("aria-invalid", "true");
  place.querySelector(".field-problem")?.remove(); // of the former value
  place.append(note);
  return { control, note };
}

// `callback.url` is shown at the field of that name, or else at that of `callback`.
function placeOf(form, name) {
  const places = [...form.querySelectorAll("[data-field]")];
  const said = (place) => name === place.dataset.field || name.startsWith(`${place.dataset.field}.`) || name.startsWith(`${place.dataset.field}[`);
  return places.filter(said).sort((a, b) => b.dataset.field.length - a.dataset.field.length)[0] ?? null;
}

function forget(form, general) {
  fill(general);
  forgetAt(form);
}

// Removes what was said of former values, at one field or at all within `place`.
export function forgetAt(place) {
  for (const note of place?.querySelectorAll(".field-problem") ?? []) note.remove();
  for (const control of place?.querySelectorAll("[aria-invalid]") ?? []) control.removeAttribute("aria-invalid");
}
