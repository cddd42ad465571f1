// A retry policy as fields: backoff, or the delays themselves. It is replaced as a whole.

import { el } from "../parts/elements.js";
import { choice, text } from "../parts/form.js";
import { typedNumber } from "../parts/numbers.js";
import { words } from "../parts/words.js";

const ATTEMPTS = ["attempts", "Attempts in all", "Default: 16, or one more than there are delays."];
const AGE = ["max_age_seconds", "Given up so long after the due instant (seconds)", "Blank: never for its age."];
const BACKOFF = [
  ["first_delay_seconds", "First delay (seconds)", "Default: 3."],
  ["factor", "Factor", "Default: 2."],
  ["max_delay_seconds", "Longest delay (seconds)", "Default: 21600."],
];
const DELAYS = ["delays_seconds", "Delays (seconds)", "One after the other, with commas between them; the last one repeats."];

export function retryFields(retry) {
  const kind = choice("retry", "How a failed call is tried again", [["", "service default"], ["backoff", "growing delays"], ["delays", "these delays"]], kindOf(retry));
  const [backoff, delays, both] = [
    [...BACKOFF.map((one) => field(retry, one)), jitterField(retry)],
    [field(retry, DELAYS)],
    [field(retry, ATTEMPTS), field(retry, AGE)],
  ].map((fields) => el("div", { class: "members" }, fields));
  const control = kind.querySelector("select");
  const match = () => {
    backoff.hidden = control.value !== "backoff";
    delays.hidden = control.value !== "delays";
    both.hidden = control.value === "";
  };
  control.addEventListener("change", match);
  match();
  return [kind, backoff, delays, both];
}

function kindOf(retry) {
  if (retry === null) return "";
  return retry.delays_seconds ? "delays" : "backoff";
}

function field(retry, [member, label, hint]) {
  const value = retry?.[member] ?? "";
  return text(`retry.${member}`, label, Array.isArray(value) ? value.join(", ") : value, { hint, inputmode: "decimal" });
}

function jitterField(retry) {
  const kinds = [["", "a random part of the delay is waited"], ["false", "the whole delay is waited"]];
  return choice("retry.jitter", "Jitter", kinds, retry?.jitter === false ? "false" : "");
}

export function retryOf(values) {
  const kind = values.retry;
  if (kind === "") return null;
  const said = (members) => members.map(([member]) => [member, typedNumber(values[`retry.${member}`])]);
  const both = said([ATTEMPTS, AGE]);
  if (kind === "delays") return given([...both, ["delays_seconds", words(values["retry.delays_seconds"]).map(typedNumber)]]);
  return given([...both, ...said(BACKOFF), ["jitter", values["retry.jitter"] === "false" ? false : null]]);
}

function given(members) {
  return Object.fromEntries(members.filter(([, value]) => value !== null));
}
