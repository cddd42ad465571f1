// A callback as fields: its type, and the members that a callback of this type has.

import { choiceOfFields } from "./choice_of_fields.js";
import { area, choice, text } from "./form.js";
import { typedNumber } from "./numbers.js";
import { Problem } from "./service.js";

// The address is the first member of each.
export const MEMBERS = {
  http: ["url", "method", "headers", "body", "timeout_seconds"],
  lambda: ["function", "invocation", "complete_within_seconds", "timeout_seconds"],
  sqs: ["queue_url", "group_id", "attributes", "body", "complete_within_seconds", "timeout_seconds"],
  sns: ["topic_arn", "group_id", "attributes", "body", "complete_within_seconds", "timeout_seconds"],
  eventbridge: ["event_bus", "source", "detail_type", "complete_within_seconds", "timeout_seconds"],
  stepfunctions: ["state_machine_arn", "timeout_seconds"],
};
const LINES = new Set(["headers", "attributes"]);
const NUMBERS = new Set(["complete_within_seconds", "timeout_seconds"]);
const ONE_A_LINE = "One a line: name: value";
const FIELDS = {
  url: (name, value) => text(name, "URL", value ?? "", { type: "url", placeholder: "https://" }),
  method: (name, value) => choice(name, "Method", [["", "POST, unless said otherwise"], "GET", "POST", "PUT", "PATCH", "DELETE"], value ?? ""),
  headers: (name, value) => area(name, "Headers", lines(value), { hint: ONE_A_LINE, rows: 3 }),
  body: (name, value) => choice(name, "Body", [["", "the payload as JSON"], ["raw", "the payload is a string: what it says"]], value ?? ""),
  function: (name, value) => text(name, "Function", value ?? "", { hint: "Its name or ARN, with an alias or a version if wanted" }),
  invocation: (name, value) => choice(name, "Invocation", [["", "sync: its answer decides"], ["async", "async: delivered when Lambda has taken it"]], value === "async" ? value : ""),
  queue_url: (name, value) => text(name, "Queue URL", value ?? "", { type: "url" }),
  topic_arn: (name, value) => text(name, "Topic ARN", value ?? ""),
  group_id: (name, value) => text(name, "Message group", value ?? "", { hint: "For FIFO queues and topics, and for no other" }),
  attributes: (name, value) => area(name, "Message attributes", lines(value), { hint: ONE_A_LINE, rows: 3 }),
  event_bus: (name, value) => text(name, "Event bus", value ?? "", { hint: "Its name or ARN; default is one" }),
  source: (name, value) => text(name, "Source", value ?? ""),
  state_machine_arn: (name, value) => text(name, "State machine ARN", value ?? "", { hint: "With an alias or a version if wanted" }),
  detail_type: (name, value) => text(name, "Detail type", value ?? ""),
  complete_within_seconds: (name, value) => text(name, "Complete within, seconds", value ?? "", { type: "number", min: 1, max: 86400, hint: "Only if its receiver reports the end of its work" }),
  timeout_seconds: (name, value) => text(name, "Time-out of a call, seconds", value ?? "", { inputmode: "decimal", hint: "Nothing: as the business says" }),
};

// `none`: the text for a missing callback. Members have the names of the request: `callback.url`.
export function callbackFields(name, label, callback, none) {
  const kind = choice(name, label, [["", none], ...Object.keys(MEMBERS)], callback?.type ?? "");
  const members = Object.entries(FIELDS).map(([member, made]) => [member, made(`${name}.${member}`, callback?.[member])]);
  return choiceOfFields(kind, members, MEMBERS);
}

// The callback that the fields of a form say; `null` for none.
export function callbackOf(name, values) {
  const type = values[name];
  if (type === "") return null;
  const said = MEMBERS[type].map((member) => [member, values[`${name}.${member}`]]).filter(([, value]) => value !== "");
  return Object.fromEntries([["type", type], ...said.map(([member, value]) => [member, read(name, member, value)])]);
}

function read(name, member, value) {
  if (NUMBERS.has(member)) return typedNumber(value);
  return LINES.has(member) ? pairs(`${name}.${member}`, value) : value;
}

function lines(pairs) {
  return Object.entries(pairs ?? {}).map(([name, value]) => `${name}: ${value}`).join("\n");
}

function pairs(field, text) {
  const read = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const [, name, value] = /^([^:]+):(.*)$/.exec(line) ?? [];
    if (name === undefined) throw unreadable(field, `“${line}” is not name: value.`);
    if (Object.hasOwn(read, name.trim())) throw unreadable(field, `“${name.trim()}” is there twice.`);
    read[name.trim()] = value.trim();
  }
  return read;
}

function unreadable(field, detail) {
  return new Problem(422, { title: "A field cannot be read", detail, field });
}
