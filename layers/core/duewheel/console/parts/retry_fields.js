// How failed calls are tried again: as the business says, by a backoff, or by delays one after the other.

import { choiceOfFields } from "./choice_of_fields.js";
import { choice, text } from "./form.js";
import { typedNumber } from "./numbers.js";

const NUMBER = { inputmode: "decimal" };

export function retryFields(retry) {
  const given = (name) => (retry?.[name] === undefined ? "" : `${retry[name]}`);
  const shared = [
    text("retry.attempts", "Attempts in all", given("attempts"), NUMBER),
    text("retry.max_age_seconds", "At most so old (seconds)", given("max_age_seconds"), NUMBER),
  ];
  const groups = {
    business: { said: "as the business says", fields: [] },
    backoff: {
      said: "backoff",
      fields: [
        ...shared,
        text("retry.first_delay_seconds", "First delay (seconds)", given("first_delay_seconds"), { ...NUMBER, placeholder: "3" }),
        text("retry.factor", "Factor", given("factor"), { ...NUMBER, placeholder: "2" }),
        text("retry.max_delay_seconds", "Longest delay (seconds)", given("max_delay_seconds"), { ...NUMBER, placeholder: "21600" }),
        choice("retry.jitter", "Jitter", [["true", "a random part of each delay"], ["false", "the whole delay"]], retry?.jitter === false ? "false" : "true"),
      ],
    },
    delays: {
      said: "delays",
      fields: [...shared, text("retry.delays_seconds", "Delays (seconds)", (retry?.delays_seconds ?? []).join(", "), { hint: "with commas; the last one repeats" })],
    },
  };
  const kind = retry ? (retry.delays_seconds ? "delays" : "backoff") : "business";
  return choiceOfFields("retry_by", "Retry", groups, kind);
}

// The member `retry` of a request; null: the business's.
export function typedRetry(values) {
  if (values.retry_by === "business") return null;
  const names = ["attempts", "max_age_seconds"];
  const own = values.retry_by === "delays" ? delays(values) : backoff(values);
  return { ...numbers(values, names), ...own };
}

function delays(values) {
  const texts = values["retry.delays_seconds"].split(/[\s,]+/).filter(Boolean);
  return { delays_seconds: texts.map(typedNumber) };
}

function backoff(values) {
  const names = ["first_delay_seconds", "factor", "max_delay_seconds"];
  return { ...numbers(values, names), ...(values["retry.jitter"] === "false" && { jitter: false }) };
}

function numbers(values, names) {
  const typed = names.map((name) => [name, typedNumber(values[`retry.${name}`])]);
  return Object.fromEntries(typed.filter(([, number]) => number !== null));
}
