// Deletes a business's settings, with its timers and pending tasks if the viewer wants that.

import { el } from "../../parts/elements.js";
import { confirmed } from "../../parts/outcomes.js";
import { stepwise } from "../../parts/progress.js";
import { pause } from "../../parts/refresh.js";
import { go } from "../../parts/router.js";
import { call } from "../../parts/service.js";

const AGAIN_MS = 1000;
const CONSEQUENCES = "Its settings are deleted for good: from then on the defaults of the service hold for whatever tasks it gets, and nothing of it is paused. "
  + "While it has timers or pending tasks this is refused, unless they are to go with it.";

export async function askToDelete({ name, etag, progress, signal }) {
  const goesAlong = el("input", { type: "checkbox" });
  const typed = el("input", { type: "text", id: "typed-name", autocomplete: "off", spellcheck: "false" });
  const check = () => typed.setCustomValidity(typed.value === name ? "" : `Type ${name} to delete it.`);
  typed.addEventListener("input", check);
  check();
  const fields = [
    el("label", { class: "box" }, goesAlong, " Delete its timers and cancel its pending tasks, too"),
    el("label", { for: "typed-name" }, `Type ${name} to say that it is meant`),
    typed,
  ];
  const isDeleted = { now: false };
  const work = () => stepwise(progress, signal, (steps) => deleted({ name, etag, goesAlong: goesAlong.checked, steps, signal, isDeleted }));
  await confirmed({ title: `Delete ${name}?`, text: CONSEQUENCES, verb: "Delete", danger: true, fields }, work);
  if (isDeleted.now && !signal.aborted) go(["businesses"]);
}

async function deleted({ name, etag, goesAlong, steps, signal, isDeleted }) {
  let [timers, cancelled, cursor] = [0, 0, null];
  const sum = () => `${counted(timers, "timer")} deleted, ${counted(cancelled, "task")} cancelled`;
  while (!steps.isStopped()) {
    const query = { cancel_pending: goesAlong ? "true" : null, cursor };
    const { members } = await call("DELETE", ["businesses", name], { query, headers: etag ? { "If-Match": etag } : {} });
    timers += members.timers;
    cancelled += members.cancelled;
    cursor = members.cursor;
    isDeleted.now = members.done;
    if (members.done) return `${name} is deleted: ${sum()}.`;
    const late = members.too_late.length;
    steps.say(`${sum()} so far${late ? `; ${counted(late, "task")} too late to cancel: their calls may be under way, and they are looked at again` : ""}.`);
    if (late) await pause(AGAIN_MS, signal);
  }
  return `Stopped: ${name} is not deleted, but ${sum()}.`;
}

function counted(count, thing) {
  return `${count.toLocaleString("en-GB")} ${thing}${count === 1 ? "" : "s"}`;
}
