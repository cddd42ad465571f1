// The settings of a business as fields of a form, and back.

import { callbackFields, callbackOf } from "../../parts/callback_form.js";
import { el } from "../../parts/elements.js";
import { area, choice, text } from "../../parts/form.js";
import { typedNumber } from "../../parts/numbers.js";
import { onOutcomeField, onOutcomeOf } from "../../parts/on_outcome.js";
import { retryFields, retryOf } from "../../parts/retry_fields.js";
import { Problem } from "../../parts/service.js";
import { words } from "../../parts/words.js";
import { secretFields, secretsOf } from "./business_secrets.js";

const NUMBERS = [
  ["calls_per_second", "Calls a second", "Retries included, over all notifiers. What exceeds it is put off."],
  ["calls_in_flight", "Calls in flight", "From 1 to 100."],
  ["creates_per_second", "Creates a second", "Beyond it a create is refused. As many may come at once after a pause."],
];
const FLOW = { rows: 3, hint: '{"default": {"calls_per_second": 5}, "prefixes": {"eu/": {"calls_in_flight": 1, "in_order": true}}}', placeholder: "none" };
const NONE = "none"; // of a list that is to be empty, which a blank is not
const STATUSES = `Statuses from 300 to 599, or 3xx, 4xx, 5xx, with commas between them; “${NONE}” for an empty list.`;

// `business` is as it was read; `null` where it has no settings.
export function settingFields(business) {
  const own = (name) => (business?.own.includes(name) ? business[name] : null);
  const byDefault = (name, said = "") => (business === null || own(name) !== null ? "service default" : `service default: ${business[name] ?? said}`);
  const number = (name, label, hint) => text(name, label, own(name) ?? "", { hint, inputmode: "decimal", placeholder: byDefault(name, "no limit") });
  const statuses = (name, label) => text(name, label, own(name) === null ? "" : own(name).join(", ") || NONE, { hint: STATUSES, placeholder: byDefault(name) });
  const origins = { rows: 3, placeholder: "service default: none", hint: "Beside the callback's own. One a line: https://example.com, or https://*.example.com for all below it." };
  const hosts = { rows: 3, placeholder: "service default: all", hint: "One a line: api.example.com, or *.example.com for all below it." };
  return [
    group("Callback", callbackFields("callback", "What its tasks leave out", own("callback"), "service default: each task says it all")),
    group(
      "Calls",
      number("timeout_seconds", "A call may take (seconds)"),
      number("tolerance_seconds", "Called later by up to (seconds)", "Its tasks share seconds then, which costs less. From 0 to 3600; tasks may say their own."),
      area("allowed_hosts", "Allowed hosts", own("allowed_hosts")?.join("\n") ?? "", hosts),
      area("trusted_origins", "Default headers also go to", own("trusted_origins")?.join("\n") ?? "", origins),
      priorityField(own("priority")),
    ),
    group("Limits", NUMBERS.map((one) => number(...one)), area("flow", "Limits of each flow key (JSON)", flowText(own("flow")), FLOW)),
    group("Retries", retryFields(own("retry"), "service default"), statuses("retry_statuses", "Tried again on"), statuses("stop_statuses", "Ended by")),
    group("Outcomes", onOutcomeField(own("on_outcome"), "service default: nobody")),
    group("Signing", secretFields(own("signing_secrets"))),
    group("Records", number("retention_days", "Ended tasks are kept (days)"), answerFields(own("keep_answers"))),
  ];
}

function group(legend, ...fields) {
  return el("fieldset", {}, el("legend", {}, legend), fields);
}

function answerFields(value) {
  return [
    text("keep_answers.body_bytes", "Bytes of the last answer that are kept", value?.body_bytes ?? "", { hint: "Up to 2048 of its body, with each task.", inputmode: "numeric", placeholder: "service default: its beginning, in the history" }),
    text("keep_answers.headers", "Headers of it that are kept", value?.headers?.join(", ") ?? "", { hint: "Up to 8 names, none of which may carry a secret." }),
  ];
}

function answersOf(values) {
  const [bytes, headers] = [typedNumber(values["keep_answers.body_bytes"]), words(values["keep_answers.headers"])];
  if (bytes === null && headers.length === 0) return null;
  return { ...(bytes === null ? {} : { body_bytes: bytes }), headers };
}

function priorityField(value) {
  return choice("priority", "Priority", [["", "service default: normal"], "high", "normal", "low"], value ?? "", { hint: "Which tasks are served first where there is no room for all. Tasks and timers may say their own." });
}

// By the names of the request; `null` is the default, `undefined` what is to stay.
export function wantedSettings(values) {
  const numbers = [...NUMBERS.map(([name]) => name), "timeout_seconds", "tolerance_seconds", "retention_days"];
  return {
    callback: callbackOf("callback", values),
    retry: retryOf(values),
    ...Object.fromEntries(numbers.map((name) => [name, typedNumber(values[name])])),
    allowed_hosts: orDefault(words(values.allowed_hosts)),
    trusted_origins: orDefault(words(values.trusted_origins)),
    retry_statuses: statuses(values.retry_statuses),
    stop_statuses: statuses(values.stop_statuses),
    on_outcome: onOutcomeOf(values.on_outcome),
    flow: flowOf(values.flow),
    priority: values.priority || null,
    keep_answers: answersOf(values),
    signing_secrets: secretsOf(values),
  };
}

function flowText(flow) {
  return flow === null ? "" : JSON.stringify(flow);
}

function flowOf(text) {
  if (text.trim() === "") return null;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem(422, { field: "flow", title: "This is no JSON", detail: `This is no JSON: ${error.message}` });
  }
}

function statuses(text) {
  const given = words(text.toLowerCase());
  return given.join() === NONE ? [] : orDefault(given.map(typedNumber));
}

function orDefault(list) {
  return list.length === 0 ? null : list;
}
