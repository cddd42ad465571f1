// Changes many tasks of a list by an operation of the service: those that are selected, or all that match the filter.
// A scope is {biz_type, actions, filter}; `filter` returns the filter of the operation.

import { shiftFields } from "../../parts/due_fields.js";
import { el, fill } from "../../parts/elements.js";
import { choice, text } from "../../parts/form.js";
import { labelsOf } from "../../parts/labels.js";
import { maker } from "../../parts/making.js";
import { typedNumber } from "../../parts/numbers.js";
import { once } from "../../parts/once.js";
import { agreed, confirmed, refusalText, told } from "../../parts/outcomes.js";
import { pause, show } from "../../parts/refresh.js";
import { link } from "../../parts/router.js";
import { selection } from "../../parts/selection.js";
import { call } from "../../parts/service.js";
import { problem } from "../../parts/states.js";
import { hasEnded, nameOf, progressOf, stateOf, stopButton, tasks } from "../operation/operation_view.js";

const EVERY_MS = 1000;
const FILTER = ["status", "key_prefix", "flow_key", "timer_id", "due_from", "due_to"];
const OF_PENDING = ["cancel", "reschedule", "run", "pause", "resume"];
const OF_ENDED = ["redrive"];

const MEANS = {
  cancel: "Their calls are not made, now or later. This cannot be undone.",
  reschedule: "They are called at their new instants, and not at the old ones. An instant in the past means now.",
  run: "Their next attempts are made at once instead of at their instants.",
  pause: "They are not called until they are resumed, or for a year behind their instants.",
  resume: "They are called at their instants, or at once if these have passed.",
  redrive: "Their receivers are called again. They become pending and get all their attempts again.",
};
const MORE = " A task that can no longer be changed is refused, and listed with the reason.";

// Of the list of tasks that this query finds.
export function bulkOfList(query, signal, then) {
  return bulk({ biz_type: query.biz_type, actions: actionsOf(query), filter: () => filterOf(query) }, signal, then);
}

// {column, place, draw}: the boxes of the rows, the place of the bar and of the progress, and what shows them for a page
// of tasks. `then` follows when tasks were changed.
export function bulk(scope, signal, then) {
  const [bar, progress] = [el("div", { class: "buttons" }), el("div")];
  let page = { tasks: [], cursor: null };
  const selected = selection(() => view());
  const named = scope.actions.map((name) => [name, nameOf({ action: name })]);
  const field = choice("action", "Action", named.length > 1 ? [["", "choose one"], ...named] : named);
  const action = field.querySelector("select");
  action.addEventListener("change", () => view());
  const begin = once(async (which, count) => {
    const card = el("div");
    progress.prepend(card);
    try {
      const members = { biz_type: scope.biz_type, action: action.value, ...which() };
      const begun = await requested({ members, count, card, signal });
      if (begun === null) return void card.remove();
      selected.clear();
      followed({ ...begun, card, signal, then }); // which may take hours: meanwhile another can be started
    } catch (error) {
      card.remove();
      told(refusalText(error), "refused");
    }
  });
  const group = el("div", { class: "bulk", role: "group", "aria-label": "Change many" }, field, bar);
  const place = el("div");
  const view = () => {
    show(bar, buttons({ page, selected, scope, begin, isChosen: action.value !== "" }));
    const isNothing = page.tasks.length === 0 && page.cursor === null;
    if (isNothing) group.remove();
    else if (!group.isConnected) place.append(group);
  };
  const draw = (shown) => {
    page = shown;
    selected.forgetOthers(page.tasks);
    view();
  };
  return { column: selected.column, place: [place, progress], draw };
}

function actionsOf({ status }) {
  if (!status) return [...OF_PENDING, ...OF_ENDED];
  return status === "pending" ? OF_PENDING : OF_ENDED;
}

function buttons({ page: { tasks: shown }, selected, scope, begin, isChosen }) {
  const button = (name, disabled, click) => el("button", { type: "button", disabled, on: { click } }, name);
  const count = selected.ids.size;
  return [
    button(selected.areAll(shown) ? "Select none" : "Select all shown", shown.length === 0, () => selected.toggle(shown)),
    button(`Apply to ${count} selected`, count === 0 || !isChosen, () => begin(() => ({ ids: [...selected.ids] }), count)),
    button("Apply to all that match", !isChosen, () => begin(() => ({ filter: scope.filter() }), null)),
  ];
}

function filterOf(query) {
  const filter = Object.fromEntries(FILTER.map((name) => [name, query[name]]).filter(([, value]) => value));
  return query.label ? { ...filter, labels: labelsOf(query.label) } : filter;
}

// Asks for what the action needs, counts where the number is not known, and starts it: {operation, count}; null where
// nothing was started.
async function requested({ members, count, card, signal }) {
  const due = members.action === "reschedule" ? shiftFields() : null;
  if (count !== null) return started(() => ({ ...members, ...due?.members() }), members, count, due ? [due.element] : []);
  const question = { title: "Reschedule all that match", text: "They are counted first. Nothing is changed yet.", verb: "Count them", fields: due?.element };
  if (due !== null && !(await agreed(question))) return null;
  const body = { ...members, ...due?.members() };
  const found = await counted(body, card, signal);
  if (found === 0) told(`The action can change no task of ${members.biz_type} that matches.`);
  return found ? started(() => body, members, found, []) : null;
}

async function started(body, { biz_type: business, action }, count, fields) {
  const pace = text("per_second", "At most (tasks a second)", "", { hint: "Nothing: as fast as the service can", inputmode: "numeric" });
  const verb = nameOf({ action });
  const question = { title: `${verb} ${tasks(count)} of ${business}?`, text: MEANS[action] + MORE, verb: `${verb} them`, danger: action === "cancel", fields: [fields, pace] };
  let operation = null;
  await confirmed(question, async () => {
    const most = pace.querySelector("input").value.trim();
    operation = (await maker(["operations"])({ ...body(), ...(most && { per_second: typedNumber(most) }) })).members;
    return "The operation has begun. It goes on when this page is left.";
  });
  return operation && { operation, count };
}

// How many tasks it would change; null where the count did not end. It ends with the page.
async function counted(body, card, signal) {
  const { members: begun } = await maker(["operations"])({ ...body, dry_run: true });
  const stop = () => call("POST", ["operations", begun.operation_id, "stop"]);
  const button = el("button", { type: "button", on: { click: once(stop) } }, "Stop counting");
  const ended = await watched(begun, signal, (operation, failed) => show(card, shown("Count", failed, progressOf(operation), button)));
  if (ended === null) await stop();
  fill(card);
  if (ended?.state === "failed") told(ended.last_problem, "refused");
  return ended?.state === "done" ? ended.changed : null;
}

// Shows how far it is, until it has ended or the page is left.
async function followed({ operation, count, card, signal, then }) {
  const { operation_id: id } = operation;
  const stop = stopButton(id, () => {});
  const close = () => el("button", { type: "button", "data-key": "close", on: { click: () => card.remove() } }, "Close");
  const ended = await watched(operation, signal, (found, failed) => show(card, shown(
    "Progress",
    failed,
    el("p", {}, el("a", { href: link(["operations", id]) }, "The operation"), " ", stateOf(found)),
    progressOf(found, count),
    el("div", { class: "buttons" }, hasEnded(found) ? close() : found.state === "running" && stop()),
  )));
  if (ended !== null) await then();
}

function shown(name, failed, ...content) {
  return el("section", { class: "card operation bulk-progress", "aria-label": name }, failed && el("div", { "data-key": "problem" }, problem(failed)), content);
}

// Reads it each second until it has ended; null where the page was left before. After a failed look it looks again.
async function watched(operation, signal, view) {
  view(operation, null);
  while (!hasEnded(operation)) {
    await pause(EVERY_MS, signal);
    if (signal.aborted) return null;
    let failed = null;
    try {
      operation = (await call("GET", ["operations", operation.operation_id])).members;
    } catch (error) {
      failed = error;
    }
    if (!signal.aborted) view(operation, failed);
  }
  return operation;
}
