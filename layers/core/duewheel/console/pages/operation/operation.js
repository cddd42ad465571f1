// One operation: how far it is, what was requested, and the tasks that it could not change.

import { el, fill } from "../../parts/elements.js";
import { pause, show } from "../../parts/refresh.js";
import { link } from "../../parts/router.js";
import { section } from "../../parts/section.js";
import { call, Problem } from "../../parts/service.js";
import { empty, loading, problem } from "../../parts/states.js";
import { pager, table } from "../../parts/table.js";
import { hasEnded, progressOf, requestOf, stateOf, stopButton, titleOf } from "./operation_view.js";

const EVERY_MS = 1000;

export async function operationPage({ place, parameters: { id }, query, signal }) {
  const whole = el("div");
  const refusals = section("Refused", EVERY_MS, signal, () => refused(id, query.cursor, signal));
  let known = null;
  const view = (operation, failed = null) => {
    known = operation;
    show(whole, ...parts(operation, stop, failed));
  };
  const stop = stopButton(id, (operation) => view(operation));
  fill(place, loading());
  while (!signal.aborted) {
    const count = known?.refused ?? 0;
    try {
      view((await call("GET", ["operations", id], { signal })).members);
    } catch (error) {
      if (signal.aborted) return;
      if (isUnknown(error)) return fill(place, el("h1", {}, "Operation"), unknown(id));
      if (known === null) return fill(place, el("h1", {}, "Operation"), problem(error));
      view(known, error);
    }
    if (!whole.isConnected) fill(place, whole, refusals.whole);
    refusals.whole.hidden = known.refused === 0;
    if (known.refused > count) await refusals.now();
    if (hasEnded(known)) return;
    await pause(EVERY_MS, signal);
  }
}

function parts(operation, stop, failed) {
  return [
    el("div", { class: "head", "data-key": "head" }, el("h1", { tabindex: "-1" }, titleOf(operation)), el("p", {}, stateOf(operation))),
    failed && el("div", { "data-key": "problem" }, problem(failed)),
    el("section", { class: "operation", "data-key": "progress", "aria-label": "Progress" }, progressOf(operation)),
    operation.state === "running" && el("div", { class: "buttons", "data-key": "actions" }, stop()),
    el("section", { "data-key": "request", "aria-label": "Request" }, el("h2", {}, "Request"), requestOf(operation)),
  ];
}

async function refused(id, cursor, signal) {
  const { members } = await call("GET", ["operations", id, "refused"], { query: { cursor }, signal });
  const next = (to) => link(["operations", id], { cursor: to });
  const pages = (cursor || members.cursor !== null) && pager(cursor, members.cursor, next);
  return [table("Refused tasks", REFUSED, members.refused, { key: ({ task_id: task }) => task }), pages];
}

const REFUSED = [
  ["Task", ({ task_id: id }) => el("a", { class: "mono", href: link(["tasks", id]) }, id)],
  ["Why", ({ problem: { title } }) => title],
  ["Detail", ({ problem: { detail } }) => detail],
];

function isUnknown(error) {
  return error instanceof Problem && error.status === 404;
}

function unknown(id) {
  return empty(
    "There is no such operation.",
    el("p", {}, el("code", {}, id), " is not the id of an operation. Its record is deleted 30 days after its end, and an operation on a business that you may not read is not there for you."),
    el("p", {}, el("a", { href: link(["operations"]) }, "All operations")),
  );
}
