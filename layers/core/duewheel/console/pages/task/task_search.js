// What is looked for among the tasks: a form, and the address that says the same.

import { nowMs } from "../../parts/clock.js";
import { businessField } from "../../parts/business_field.js";
import { el } from "../../parts/elements.js";
import { choice, form, instantField, text } from "../../parts/form.js";
import { labelField, labelTexts } from "../../parts/labels.js";
import { viewersZone } from "../../parts/instants.js";
import { putInstant } from "../../parts/local_time.js";
import { go } from "../../parts/router.js";

const STATUSES = [["", "any"], "pending", "delivered", "dead", "cancelled", "expired"];
const ORDERS = [["", "oldest due first"], ["desc", "newest due first"]];
const HOUR_MS = 3_600_000;

export function searchForm(query, signal) {
  const hint = viewersZone();
  const bounds = [instantField("due_from", "Due from", query.due_from, { hint }), instantField("due_to", "Due before", query.due_to, { hint })];
  const within = (range) => {
    range().forEach((ms, index) => putInstant(bounds[index].querySelector("input"), new Date(ms).toISOString()));
    element.requestSubmit();
  };
  const fields = [
    el(
      "div",
      { class: "filters" },
      businessField(query.biz_type ?? "", signal),
      text("find", "Task id or key", query.find ?? "", { hint: "A key needs its business" }),
      text("key_prefix", "Key prefix", query.key_prefix ?? "", { hint: "Alone: live tasks, by key" }),
      choice("status", "Status", STATUSES, query.status ?? ""),
      text("flow_key", "Flow key", query.flow_key ?? ""),
      text("timer_id", "Timer id", query.timer_id ?? "", { hint: "Its occurrences", inputmode: "numeric" }),
      labelField("label", "Labels", labelTexts(query.label), "name:value, one a line: all must match"),
      bounds,
      choice("order", "Order", ORDERS, query.order ?? ""),
    ),
    quickChoices(within),
  ];
  const clear = el("button", { type: "button", on: { click: () => seek({}) } }, "Clear");
  const element = form(fields, "Search", seek, { also: clear, "aria-label": "Search tasks", class: "search" });
  return element;
}

function quickChoices(within) {
  const choices = [["Last hour", lastHour], ["Next hour", nextHour], ["Today", today]];
  const buttons = choices.map(([said, range]) => el("button", { type: "button", on: { click: () => within(range) } }, said));
  return el("div", { class: "buttons quick", role: "group", "aria-label": "Due" }, el("span", { class: "quiet" }, "Due"), buttons);
}

const lastHour = () => [nowMs() - HOUR_MS, nowMs()];
const nextHour = () => [nowMs(), nowMs() + HOUR_MS];

function today() {
  const day = new Date(nowMs());
  return [new Date(day.getFullYear(), day.getMonth(), day.getDate()), new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1)];
}

// The same search again looks anew, though the address stays. The keyboard goes on at what is found.
function seek(query) {
  const before = location.hash;
  window.addEventListener("hashchange", () => document.getElementById("found")?.focus(), { once: true });
  go(["tasks"], query);
  if (location.hash === before) window.dispatchEvent(new HashChangeEvent("hashchange"));
}
