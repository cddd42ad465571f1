// What is looked for among the tasks: a form, and the address that says the same.

import { nowMs } from "../parts/clock.js";
import { businessField } from "../parts/business_field.js";
import { el } from "../parts/elements.js";
import { choice, field, form, text } from "../parts/form.js";
import { viewersZone } from "../parts/instants.js";
import { instantOf, localOf } from "../parts/local_time.js";
import { go } from "../parts/router.js";

const STATUSES = [["", "any"], "pending", "delivered", "dead", "cancelled", "expired"];
const ORDERS = [["", "oldest due first"], ["desc", "newest due first"]];
const HOUR_MS = 3_600_000;

export function searchForm(query, signal) {
  const bounds = [bound("due_from", "Due from", query), bound("due_to", "Due before", query)];
  const search = (given) => {
    const [due_from, due_to] = bounds.map((place) => instantOf(place.querySelector("input")));
    seek({ ...given, due_from, due_to });
  };
  const within = (range) => {
    const inputs = bounds.map((place) => place.querySelector("input"));
    range().forEach((ms, index) => { inputs[index].value = localOf(new Date(ms).toISOString()); });
    element.requestSubmit();
  };
  const fields = [
    el(
      "div",
      { class: "filters" },
      businessField(query.biz_type ?? "", signal),
      text("find", "Task id or key", query.find ?? "", { hint: "A key needs its business" }),
      text("key_prefix", "Key prefix", query.key_prefix ?? "", { hint: "Live tasks whose keys begin so" }),
      choice("status", "Status", STATUSES, query.status ?? ""),
      bounds,
      choice("order", "Order", ORDERS, query.order ?? ""),
    ),
    quickChoices(within),
  ];
  const clear = el("button", { type: "button", on: { click: () => seek({}) } }, "Clear");
  const element = form(fields, "Search", search, { also: clear, "aria-label": "Search tasks", class: "search" });
  return element;
}

function bound(name, label, query) {
  const control = el("input", { type: "datetime-local", step: "1", value: localOf(query[name]) });
  return field({ name, label, control, hint: viewersZone() });
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
