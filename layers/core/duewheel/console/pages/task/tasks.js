// Tasks, looked for by business, status and due instant, by id, by key or by key prefix.

import { el, fill } from "../../parts/elements.js";
import { inTurn, repeatedly, show } from "../../parts/refresh.js";
import { link } from "../../parts/router.js";
import { empty, loading, problem } from "../../parts/states.js";
import { cancelAllButton } from "./prefix_cancel.js";
import { taskList, taskPageOf } from "./task_list.js";
import { lookedUp, nothingFound } from "./task_lookup.js";
import { searchForm } from "./task_search.js";

const EVERY_MS = 10_000; // a page reads up to 500 tasks

export async function tasksPage({ place, query, signal }) {
  const results = el("section", { id: "found", tabindex: "-1", "aria-label": "Found" });
  const head = el(
    "div",
    { class: "head" },
    el("h1", {}, "Tasks"),
    el("a", { class: "button", href: link(["tasks", "new"], { biz_type: query.biz_type }) }, "New task"),
  );
  fill(place, head, searchForm(query, signal), results);
  if (query.find) return found(results, query, signal);
  if (query.key_prefix && !query.biz_type) return fill(results, empty("A key prefix needs its business."));
  return listed(results, query, signal);
}

async function found(results, query, signal) {
  fill(results, loading());
  try {
    const task = await lookedUp(query, signal);
    if (task === null) fill(results, nothingFound(query));
    else location.replace(link(["tasks", task.task_id])); // Back leads to where the search began
  } catch (error) {
    if (!signal.aborted) fill(results, problem(error));
  }
}

async function listed(results, query, signal) {
  let page = null;
  const look = inTurn(async () => {
    try {
      page = await taskPageOf(query, signal);
      show(results, ofPrefix(), taskList(page, query));
    } catch (error) {
      if (!signal.aborted) show(results, el("div", { "data-key": "problem" }, problem(error)), page && [ofPrefix(), taskList(page, query)]);
    }
  });
  const cancelAll = query.key_prefix ? cancelAllButton(query, look) : null;
  const ofPrefix = () => (cancelAll === null ? null : [ignored(query), isNothing(page) ? null : el("div", { class: "buttons", "data-key": "cancel" }, cancelAll())]);
  fill(results, loading());
  await repeatedly(EVERY_MS, signal, look);
}

function isNothing({ tasks, cursor }) {
  return tasks.length === 0 && cursor === null;
}

function ignored({ status, label, due_from, due_to, order }) {
  const isMore = status || label || due_from || due_to || order;
  return isMore && el("p", { class: "quiet", "data-key": "ignored" }, "Under a key prefix all live tasks are shown in the order of their keys, whatever status, labels, instants and order say.");
}
