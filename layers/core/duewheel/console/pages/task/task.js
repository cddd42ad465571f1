// One task: its state, its outcome, and the possible actions.

import { ticking } from "../../parts/countdown.js";
import { el, fill } from "../../parts/elements.js";
import { rawMember } from "../../parts/raw_member.js";
import { repeatedly, show } from "../../parts/refresh.js";
import { link } from "../../parts/router.js";
import { call, Problem } from "../../parts/service.js";
import { empty, loading, problem } from "../../parts/states.js";
import { taskActions } from "./task_actions.js";
import { attempts } from "./task_attempts.js";
import { lastAnswer, taskFacts, taskCallback, taskHead } from "./task_facts.js";
import { payloadView } from "./task_payload.js";
import { path } from "./task_path.js";

const EVERY_MS = 3000;
const ENDED = new Set(["delivered", "cancelled", "expired"]); // a dead one is redriven sooner, also by another

export async function taskPage({ place, parameters, signal }) {
  const id = parameters.id;
  let [answer, changes, isOver] = [null, 0, false];
  const payload = payloadView(() => view());
  const changed = (latest) => {
    changes += 1;
    answer = latest;
    view();
  };
  const actions = taskActions(id, changed);
  const view = (failed = null) => {
    if (signal.aborted) return; // the place is another page's by now
    show(place, ...taskView(answer, actions(answer.members), payload(rawMember(answer.text, "payload")), failed));
  };
  const look = async () => {
    if (isOver || ENDED.has(answer?.members.status)) return;
    const before = changes;
    try {
      const latest = await call("GET", ["tasks", id], { signal });
      if (changes !== before) return; // an answer from before a change does not contain it
      answer = latest;
      view();
    } catch (error) {
      if (signal.aborted) return;
      isOver = isUnknown(error);
      if (isOver) fill(place, el("h1", {}, "Task"), unknown(id));
      else if (answer === null) show(place, el("h1", {}, "Task"), problem(error));
      else view(error);
    }
  };
  fill(place, loading());
  await Promise.all([repeatedly(EVERY_MS, signal, look), ticking(place, signal)]);
}

function taskView({ members: task }, actions, payload, failed) {
  return [
    taskHead(task),
    path(task),
    failed && el("div", { "data-key": "problem" }, problem(failed)),
    actions,
    el(
      "div",
      { class: "columns", "data-key": "columns" },
      el("div", {}, section("Facts", taskFacts(task)), section("Callback", taskCallback(task))),
      el("div", {}, section("Attempts", attempts(task)), section("Payload", payload), task.answer && section("Last answer", lastAnswer(task))),
    ),
  ];
}

function section(name, ...content) {
  return el("section", { "data-key": name, "aria-label": name }, el("h2", {}, name), content);
}

function isUnknown(error) {
  return error instanceof Problem && (error.type === "unknown-task" || error.type === "malformed-task-id");
}

function unknown(id) {
  return empty(
    "There is no such task.",
    el("p", {}, el("code", {}, id), " is not the id of a task. The record of an ended task is deleted after a while, and a task of a business that you may not read is not there for you."),
    el("p", {}, el("a", { href: link(["tasks"]) }, "Look for tasks")),
  );
}
