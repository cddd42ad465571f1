// A retry policy as fields: growing delays, or the delays themselves. It is replaced as a whole.

import { choiceOfFields } from "./choice_of_fields.js";
import { choice, text } from "./form.js";
import { typedNumber } from "./numbers.js";
import { words } from "./words.js";

const IN_BOTH = ["attempts", "max_age_seconds"];
const MEMBERS = {
  backoff: ["first_delay_seconds", "factor", "max_delay_seconds", ...IN_BOTH],
  delays: ["delays_seconds", ...IN_BOTH],
};
const FIELDS = {
  first_delay_seconds: number("First delay (seconds)", "Default: 3. A random part of each delay is waited."),
  factor: number("Factor", "Default: 2."),
  max_delay_seconds: number("Longest delay (seconds)", "Default: 21600."),
  delays_seconds: number("Delays (seconds)", "One after the other, with commas between them; the last one repeats."),
  attempts: number("Attempts in all", "Default: 16, or one more than there are delays."),
  max_age_seconds: number("Given up so long after the due instant (seconds)", "Blank: never for its age."),
};

function number(label, hint) {
  return (name, value) => text(name, label, [value ?? ""].flat().join(", "), { hint, inputmode: "decimal" });
}

// `none`: the text for a missing policy.
export function retryFields(retry, none) {
  const kinds = [["", none], ["backoff", "growing delays"], ["delays", "these delays"]];
  const kind = choice("retry", "How a failed call is tried again", kinds, kindOf(retry));
  const members = Object.entries(FIELDS).map(([member, made]) => [member, made(`retry.${member}`, retry?.[member])]);
  return choiceOfFields(kind, members, MEMBERS);
}

function kindOf(retry) {
  if (retry === null) return "";
  return retry.delays_seconds ? "delays" : "backoff";
}

// The member `retry` of a request; null where it is left to others.
export function retryOf(values) {
  if (values.retry === "") return null;
  const said = MEMBERS[values.retry].map((member) => [member, typed(member, values[`retry.${member}`])]);
  return Object.fromEntries(said.filter(([, value]) => value !== null));
}

function typed(member, text) {
  return member === "delays_seconds" ? words(text).map(typedNumber) : typedNumber(text);
}
