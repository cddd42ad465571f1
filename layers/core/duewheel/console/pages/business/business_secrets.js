// Signing secrets as fields. The service never shows those that are set: of them there are hints.

import { el } from "../../parts/elements.js";
import { choice, text } from "../../parts/form.js";

const BYTES = 32;
const FORM = "whsec_ and the base64 of 24 to 64 random bytes. Keep it before you save: it is shown this once, here.";

export function secretFields(hints) {
  const now = hints === null ? "not signed, as now" : `as now: ${hints.join(", ")}`;
  const kinds = [["", now], ["set", hints === null ? "signed with" : "signed with others"], ...(hints === null ? [] : [["none", "not signed"]])];
  const kind = choice("signing_secrets", "How its HTTP callbacks are signed", kinds, "");
  const secrets = el("div", { class: "members" }, secretField(), beside());
  const control = kind.querySelector("select");
  const match = () => { secrets.hidden = control.value !== "set"; };
  control.addEventListener("change", match);
  match();
  return [kind, secrets];
}

function secretField() {
  const field = text("signing_secrets[0]", "Secret", "", { hint: FORM, class: "mono" });
  const control = field.querySelector("input");
  const make = () => { control.value = newSecret(); control.focus(); control.select(); };
  field.append(el("div", { class: "buttons" }, el("button", { type: "button", on: { click: make } }, "Make a new secret")));
  return field;
}

function beside() {
  return text("signing_secrets[1]", "The one before it, still good", "", { hint: "To replace a secret without a gap: sign with both, give the new one to the receivers, then sign with it alone.", class: "mono" });
}

export function newSecret() {
  return `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(BYTES))))}`;
}

export function secretsOf(values) {
  if (values.signing_secrets === "") return undefined;
  if (values.signing_secrets === "none") return null;
  return [values["signing_secrets[0]"], values["signing_secrets[1]"]].filter((secret, index) => index === 0 || secret !== "");
}
