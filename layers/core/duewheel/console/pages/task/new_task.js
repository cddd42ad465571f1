// A new task. However often it is sent, one is made of it.

import { businessField } from "../../parts/business_field.js";
import { dueFields } from "../../parts/due_fields.js";
import { el, fill } from "../../parts/elements.js";
import { area, choice, form, text } from "../../parts/form.js";
import { labelField, labelsOf } from "../../parts/labels.js";
import { maker } from "../../parts/making.js";
import { typedNumber } from "../../parts/numbers.js";
import { onOutcomeField, onOutcomeOf } from "../../parts/on_outcome.js";
import { told } from "../../parts/outcomes.js";
import { go, link } from "../../parts/router.js";
import { Problem } from "../../parts/service.js";

const METHODS = [["", "default"], "GET", "POST", "PUT", "PATCH", "DELETE"];

export async function newTaskPage({ place, query, signal }) {
  const due = dueFields();
  const make = maker(["tasks"]);
  const fields = [
    businessField(query.biz_type ?? "", signal),
    due.element,
    text("key", "Key", query.key ?? "", { hint: "Your own name for it, if it shall have one" }),
    area("payload", "Payload", "", { hint: "JSON, sent as it is written here; nothing: no body" }),
    el(
      "div",
      { class: "callback-fields" },
      text("callback.url", "Callback URL", "", { hint: "Nothing: where the business says", inputmode: "url" }),
      choice("callback.method", "Method", METHODS, "", { hint: "The business's, else POST" }),
    ),
    text("callback.timeout_seconds", "A call may take (seconds)", "", { hint: "Nothing: what the business says", inputmode: "decimal" }),
    text("tolerance_seconds", "Called later by up to (seconds)", "", { hint: "To share a second with others, which costs less; nothing: what the business says", inputmode: "numeric" }),
    choice("priority", "Priority", [["", "as the business says"], "high", "normal", "low"], "", { hint: "Which tasks are served first where there is no room for all" }),
    text("flow_key", "Flow key", "", { hint: "Whose limits and pause it follows; nothing: only those of the business" }),
    labelField("labels", "Labels", {}, "name:value, one a line, by which it is found again"),
    onOutcomeField(null, "as the business says"),
  ];
  const submit = async (given) => {
    const { status, members } = await make(bodyOf(given, due.members()));
    told(status === 201 ? "The task is created." : "The key names this task already; nothing was made.");
    if (!signal.aborted) go(["tasks", members.task_id]);
  };
  const leave = el("a", { class: "button", href: link(["tasks"], { biz_type: query.biz_type }) }, "Leave it");
  fill(place, el("h1", {}, "New task"), form(fields, "Create", submit, { also: leave, class: "new-task", "aria-label": "New task" }));
}

// The payload goes in as the text that it is, once it is known to be one value and nothing behind it.
function bodyOf(given, due) {
  const said = ["url", "method", "timeout_seconds"].map((name) => [name, given[`callback.${name}`]]).filter(([, value]) => value !== "");
  const named = said.map(([name, value]) => [name, name === "timeout_seconds" ? typedNumber(value) : value]);
  const callback = said.length > 0 && { callback: Object.fromEntries(named) };
  const tolerance = given.tolerance_seconds && { tolerance_seconds: typedNumber(given.tolerance_seconds) };
  const asked = given.on_outcome && { on_outcome: onOutcomeOf(given.on_outcome) };
  const flow = given.flow_key && { flow_key: given.flow_key };
  const labels = given.labels && { labels: labelsOf(given.labels) };
  const members = JSON.stringify({ biz_type: given.biz_type, ...due, ...(given.key && { key: given.key }), ...tolerance, ...(given.priority && { priority: given.priority }), ...flow, ...labels, ...asked, ...callback });
  if (given.payload === "") return members;
  checkJson(given.payload);
  return `${members.slice(0, -1)},"payload":${given.payload}}`;
}

function checkJson(payload) {
  try {
    JSON.parse(payload);
  } catch (error) {
    throw new Problem(422, { field: "payload", title: "The payload is no JSON", detail: `This is no JSON: ${error.message}` });
  }
}
