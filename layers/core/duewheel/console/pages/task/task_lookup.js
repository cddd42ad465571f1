// Finds the one task that is meant by an id, or by a key of a business.

import { el } from "../../parts/elements.js";
import { link } from "../../parts/router.js";
import { call, Problem } from "../../parts/service.js";
import { empty } from "../../parts/states.js";

// The task, or null where neither names one. Other refusals are thrown.
export async function lookedUp({ biz_type, find }, signal) {
  const byKey = biz_type ? await asked(["businesses", biz_type, "tasks", find], signal) : null;
  return byKey ?? asked(["tasks", find], signal);
}

async function asked(path, signal) {
  try {
    return (await call("GET", path, { signal })).members;
  } catch (error) {
    if (error instanceof Problem && namesNothing(error)) return null;
    throw error;
  }
}

// Whether the refusal says that this is no name of a task, and not that something else is wrong.
function namesNothing(error) {
  return error.type === "unknown-task" || error.type === "malformed-task-id" || (error.type === "invalid-field" && error.field === "key");
}

export function nothingFound({ biz_type, find }) {
  const asKey = biz_type ? [", nor a key of ", el("a", { href: link(["businesses", biz_type]) }, biz_type), "."] : ". If it is a key, name its business.";
  return empty(
    "No task is found by that name.",
    el("p", {}, el("code", {}, find), " is no task's id", asKey),
    el("p", {}, "The record of an ended task is deleted after a while, and a task of a business that you may not read is not there for you."),
  );
}
