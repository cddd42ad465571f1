// Redrives: of tasks one by one, each with its outcome, and of all that a filter takes.

import { el } from "../../parts/elements.js";
import { fewAtOnce } from "../../parts/few.js";
import { instant } from "../../parts/instants.js";
import { confirmed, refusalText } from "../../parts/outcomes.js";
import { stepwise } from "../../parts/progress.js";
import { link } from "../../parts/router.js";
import { call } from "../../parts/service.js";

const AT_ONCE = 4;
const MEANS = "They become pending again with attempts counted from 0, the first of them now, and an expiry that they were given no longer applies.";

export async function redriveSelected({ name, ids, progress, signal }) {
  const title = `Redrive ${tasks(ids.length)} of ${name}?`;
  await confirmed({ title, text: MEANS, verb: "Redrive" }, () => stepwise(progress, signal, (steps) => oneByOne(ids, steps)));
}

async function oneByOne(ids, { say, note, isStopped }) {
  let [redriven, refused] = [0, 0];
  await fewAtOnce(AT_ONCE, ids, isStopped, async (id) => {
    try {
      await call("POST", ["tasks", id, "redrive"]);
      redriven += 1;
      note(named(id), ": redriven");
    } catch (error) {
      refused += 1;
      note(named(id), `: ${refusalText(error)}`);
    }
    say(`${redriven + refused} of ${tasks(ids.length)} …`);
  });
  const left = ids.length - redriven - refused;
  return `${tasks(redriven)} redriven, ${refused} refused${left ? `, ${left} left out when it was stopped` : ""}.`;
}

export async function redriveAll({ name, filter, progress, signal }) {
  const text = [`All dead tasks of ${name} are redriven`, inWords(filter), ", also those on other pages. ", MEANS];
  await confirmed({ title: "Redrive all?", text, verb: "Redrive all" }, () => stepwise(progress, signal, (steps) => pageByPage({ name, filter, steps })));
}

async function pageByPage({ name, filter, steps }) {
  const { status_code: status, ...rest } = filter;
  const wanted = status ? { ...rest, status_code: number(status) } : rest;
  let [redriven, refused, cursor] = [0, 0, null];
  const sum = () => `${tasks(redriven)} redriven, ${refused} refused`;
  do {
    const { members } = await call("POST", ["businesses", name, "redrive"], { body: cursor ? { ...wanted, cursor } : wanted });
    redriven += members.redriven;
    refused += members.refused.length;
    for (const { task_id: id, problem } of members.refused) steps.note(named(id), `: ${problem.detail}`);
    cursor = members.cursor;
    steps.say(`${sum()} so far …`);
  } while (cursor !== null && !steps.isStopped());
  return cursor === null ? `${sum()}.` : `Stopped: ${sum()}; there are more.`;
}

// What is no number is for the service to refuse.
function number(text) {
  return /^\d+$/.test(text) ? Number(text) : text;
}

function inWords({ since, until, reason, status_code: status, last_error: error }) {
  return [
    since && [" that died from ", instant(since), " on"],
    until && [" that died before ", instant(until)],
    reason && ` whose reason is “${reason}”`,
    status && ` whose last attempt got status ${status}`,
    error && ` whose last error contains “${error}”`,
  ].filter(Boolean).map((part, index) => (index === 0 ? part : [",", part]));
}

function named(id) {
  return el("a", { class: "mono", href: link(["tasks", id]) }, id);
}

function tasks(count) {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? "task" : "tasks"}`;
}
