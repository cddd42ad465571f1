// Tasks, looked for by business, status and due instant, by id, by key or by key prefix.

import { el, fill } from "../../parts/elements.js";
import { folded } from "../../parts/fold.js";
import { inTurn, repeatedly, show } from "../../parts/refresh.js";
import { link } from "../../parts/router.js";
import { loading, problem } from "../../parts/states.js";
import { cancelAllButton } from "./prefix_cancel.js";
import { bulkOfList } from "./task_bulk.js";
import { isByKey, taskList, taskPageOf } from "./task_list.js";
import { lookedUp, nothingFound } from "./task_lookup.js";
import { searchForm } from "./task_search.js";
import { taskStates } from "./task_states.js";

const EVERY_MS = 10_000; // a page reads up to 500 tasks
const NEEDS_BUSINESS = () => el("p", { class: "hint", "data-key": "hint" }, "To change many at once, name a business.");

export async function tasksPage({ place, query, signal }) {
  const results = el("section", { id: "found", tabindex: "-1", "aria-label": "Found" });
  const head = el(
    "div",
    { class: "head" },
    el("h1", {}, "Tasks"),
    el("a", { class: "button", href: link(["tasks", "new"], { biz_type: query.biz_type }) }, "New task"),
  );
  fill(place, head, folded("Search", searchForm(query, signal)), taskStates(query), results);
  if (query.find) return found(results, query, signal);
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
      view();
    } catch (error) {
      if (!signal.aborted) view(error);
    }
  });
  const many = query.biz_type ? bulkOfList(query, signal, look) : null;
  const list = el("div");
  const cancelAll = isByKey(query) ? cancelAllButton(query, look) : null;
  const view = (failed = null) => {
    many?.draw(page ?? { tasks: [], cursor: null });
    show(
      list,
      failed && el("div", { "data-key": "problem" }, problem(failed)),
      page && [many === null && !isNothing(page) && NEEDS_BUSINESS(), cancelAll && !isNothing(page) && el("div", { class: "buttons", "data-key": "cancel" }, cancelAll()), taskList(page, query, many?.column)],
    );
  };
  fill(list, loading());
  fill(results, many?.place ?? [], list);
  await repeatedly(EVERY_MS, signal, look);
}

function isNothing({ tasks, cursor }) {
  return tasks.length === 0 && cursor === null;
}
