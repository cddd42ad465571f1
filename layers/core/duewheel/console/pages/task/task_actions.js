// The possible actions on a task in its present state. The service decides whether they are in time.

import { dueFields } from "../../parts/due_fields.js";
import { el } from "../../parts/elements.js";
import { written } from "../../parts/instants.js";
import { once } from "../../parts/once.js";
import { confirmed } from "../../parts/outcomes.js";
import { link } from "../../parts/router.js";
import { call } from "../../parts/service.js";
import { waitingText } from "./task_waiting.js";

const ENDED = new Set(["delivered", "dead", "cancelled", "expired"]);

// Buttons for a task; `changed` gets each answer that shows it as it is then.
export function taskActions(id, changed) {
  const does = (asks, method, rest, outcome) =>
    once(async () => {
      const { members, ...question } = asks();
      await confirmed(question, async () => {
        const answer = await call(method, ["tasks", id, ...rest], members && { body: members() });
        keepFocus(() => changed(answer));
        return outcome(answer.members);
      });
    });
  const cancel = does(cancelling, "DELETE", [], () => "The task is cancelled; its call is not made.");
  const move = does(moving, "PATCH", [], ({ due_at }) => `The task is due at ${written(due_at)}.`);
  const run = does(running, "POST", ["run"], ({ waiting }) => (waiting ? `The task is due now, and waits: ${waitingText(waiting)}` : "The next attempt is made now."));
  const redrive = does(redriving, "POST", ["redrive"], ({ next_at, waiting }) => `The task is pending again; its next attempt is due at ${written(next_at)}.${waiting ? ` It waits: ${waitingText(waiting)}` : ""}`);
  const probe = (task) => once(() => confirmed(probing(task), async () => {
    await call("POST", ["businesses", task.biz_type, "probe"], { body: { host: task.waiting.host } });
    const answer = await call("POST", ["tasks", id, "run"]);
    keepFocus(() => changed(answer));
    return `${task.waiting.host} is tried by this task now.`;
  }));
  const pause = does(pausing, "POST", ["pause"], ({ next_at }) => `The task is paused; if nobody resumes it, it is called at ${written(next_at)}.`);
  const resume = does(resuming, "POST", ["resume"], ({ next_at }) => `The task is resumed; its next attempt is due at ${written(next_at)}.`);
  return (task) => buttons(task, { cancel, move, run, redrive, pause, resume, probe: probe(task) });
}

function buttons(task, { cancel, move, run, redrive, pause, resume, probe }) {
  const isPending = task.status === "pending" && !task.running;
  const isOfTimer = isPending && task.timer_id !== undefined;
  const isOwn = isPending && !isOfTimer && task.notice_of === undefined;
  const offered = [
    isOwn && button("Run now", run),
    isOwn && task.waiting?.reason === "open-breaker" && task.waiting.host && button("Probe the host now", probe),
    isOwn && button("Reschedule", move),
    isOwn && (task.paused ? button("Resume", resume) : button("Pause", pause)),
    ENDED.has(task.status) && button("Redrive", redrive),
    task.status === "pending" && button("Cancel the task", cancel, "danger"),
  ].filter(Boolean);
  const ofTimer = isOfTimer && el("p", { class: "hint" }, "Its instant is its ", el("a", { href: link(["timers", task.timer_id]) }, "timer"), "'s: change that, or run that now.");
  return el("div", { "data-key": "actions" }, offered.length > 0 && el("div", { class: "buttons" }, offered), ofTimer);
}

function button(name, work, kind = null) {
  return el("button", { type: "button", class: kind, "data-key": name, on: { click: work } }, name);
}

const cancelling = () => ({
  title: "Cancel this task?",
  text: "Its call is not made, now or later. This cannot be undone. Shortly before its next attempt it is too late: the service then says so, and the call may be under way.",
  verb: "Cancel it",
  danger: true,
});

const running = () => ({
  title: "Run this task now?",
  text: "Its next attempt is made at once instead of at its instant. Its due instant stays as it is.",
  verb: "Run it",
});

const probing = ({ biz_type: name, waiting: { host } }) => ({
  title: `Probe ${host} now?`,
  text: `This task is called at once, as the one call of ${name} that finds out whether the host works again. If it does, the others are called, too; if not, the host is blocked again, for longer.`,
  verb: "Probe it",
});

const pausing = () => ({
  title: "Pause this task?",
  text: "It is not called until it is resumed, or for a year behind its instant. Shortly before its next attempt it is too late: the service then says so, and the call may be under way.",
  verb: "Pause it",
});

const resuming = () => ({
  title: "Resume this task?",
  text: "It is called at its instant, or at once if that has passed.",
  verb: "Resume it",
});

const redriving = () => ({
  title: "Redrive this task?",
  text: "Its receiver is called again, also if the task was delivered. It becomes pending and gets all its attempts again: the first at once, or at its due instant if that is still ahead.",
  verb: "Redrive it",
});

function moving() {
  const due = dueFields();
  return {
    title: "Reschedule this task",
    text: "It is called at the new instant, and not at the old one. An instant in the past means now.",
    verb: "Reschedule it",
    fields: due.element,
    members: due.members,
  };
}

// The button that was pressed may be gone by then; the keyboard goes on from the heading.
function keepFocus(change) {
  change();
  if (document.activeElement === document.body) document.querySelector("main h1")?.focus();
}
