// The dead tasks of a business by the instant and the cause of their death, and their redrive.

import { el, fill } from "../parts/elements.js";
import { choice, form, text } from "../parts/form.js";
import { instant, viewersZone } from "../parts/instants.js";
import { meant, typed } from "../parts/local_instants.js";
import { repeatedly, show } from "../parts/refresh.js";
import { go, link } from "../parts/router.js";
import { call } from "../parts/service.js";
import { empty, loading, problem } from "../parts/states.js";
import { pager, table } from "../parts/table.js";
import { businessHead } from "./business_head.js";
import { redriveAll, redriveSelected } from "./business_redrive.js";

const EVERY_MS = 10_000;
const ON_A_PAGE = 50;
const FILTER = ["since", "until", "reason", "status_code", "last_error"];
const DEATHS = ["stopped", "attempts exhausted", "older than max_age_seconds"];

export async function businessDeadPage({ place, parameters: { name }, query, signal }) {
  const filter = Object.fromEntries(FILTER.map((member) => [member, query[member]]).filter(([, value]) => value));
  const [progress, list] = [el("div"), el("div", {}, loading())];
  const selected = new Set();
  let read = null;
  const draw = () => show(list, listed({ name, filter, here: query.cursor, read, selected, actions, draw }));
  const anew = async () => {
    try {
      read = (await call("GET", ["businesses", name, "dead"], { query: { ...filter, limit: ON_A_PAGE, cursor: query.cursor }, signal })).members;
      forgetOthers(selected, read.tasks);
      if (!signal.aborted) draw();
    } catch (error) {
      if (!signal.aborted) show(list, problem(error));
    }
  };
  const actions = {
    selected: () => redriveSelected({ name, ids: [...selected], progress, signal }).finally(anew),
    all: () => redriveAll({ name, filter, progress, signal }).finally(anew),
  };
  fill(place, businessHead(name, "Dead tasks"), filterForm(name, query), progress, list);
  await repeatedly(EVERY_MS, signal, anew);
}

function forgetOthers(selected, tasks) {
  const shown = new Set(tasks.map(({ task_id: id }) => id));
  for (const id of selected) if (!shown.has(id)) selected.delete(id);
}

function filterForm(name, query) {
  const local = { type: "datetime-local", step: 1 };
  const fields = el(
    "div",
    { class: "filters" },
    text("since", "Died from", typed(query.since), local),
    text("until", "Died before", typed(query.until), local),
    choice("reason", "Reason", [["", "any"], ...DEATHS], query.reason ?? ""),
    text("status_code", "Status of the last attempt", query.status_code ?? "", { inputmode: "numeric" }),
    text("last_error", "Last error contains", query.last_error ?? ""),
  );
  const submit = async ({ since, until, ...more }) => go(["businesses", name, "dead"], { ...more, since: meant(since), until: meant(until) });
  const clear = el("a", { class: "button", href: link(["businesses", name, "dead"]) }, "Clear");
  const hint = el("p", { class: "hint" }, `Instants are those of ${viewersZone()}. `);
  return form([fields, hint], "Filter", submit, { also: clear, "aria-label": "Filter" });
}

function listed({ name, filter, here, read, selected, actions, draw }) {
  const pages = pager(here, read.cursor, (to) => link(["businesses", name, "dead"], { ...filter, cursor: to }));
  const isFiltered = Object.keys(filter).length > 0;
  const all = read.tasks.length > 0 || read.cursor !== null || here;
  return [
    el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", disabled: read.tasks.length === 0, on: { click: () => select(read.tasks, selected, draw) } }, areAll(read.tasks, selected) ? "Select none" : "Select all shown"),
      el("button", { type: "button", disabled: selected.size === 0, on: { click: actions.selected } }, `Redrive ${selected.size} selected`),
      el("button", { type: "button", disabled: !all, on: { click: actions.all } }, isFiltered ? "Redrive all that the filter takes" : "Redrive all"),
    ),
    read.tasks.length > 0 ? table("Dead tasks", columns(selected, draw), read.tasks, { key: ({ task_id: id }) => id }) : nothing(isFiltered, read.cursor),
    (here || read.tasks.length > 0 || read.cursor) && pages,
  ];
}

// A page looks at so many tasks and no more, so the filter may take none of them and some of the next.
function nothing(isFiltered, cursor) {
  if (cursor !== null) return empty("The filter takes none of the tasks that this page looked at; there are more.");
  return empty(isFiltered ? "The filter takes no dead task." : "No task of it is dead.");
}

function areAll(tasks, selected) {
  return tasks.length > 0 && tasks.every(({ task_id: id }) => selected.has(id));
}

function select(tasks, selected, draw) {
  const isToSelect = !areAll(tasks, selected);
  for (const { task_id: id } of tasks) choose(selected, id, isToSelect);
  for (const box of document.querySelectorAll("[data-task]")) box.checked = isToSelect;
  draw();
}

function choose(selected, id, isChosen) {
  if (isChosen) selected.add(id);
  else selected.delete(id);
}

function columns(selected, draw) {
  return [
    ["Select", ({ task_id: id }) => box(id, selected, draw)],
    ["Task", ({ task_id: id }) => el("a", { class: "mono", href: link(["tasks", id]) }, id)],
    ["Key", ({ key }) => key ?? el("span", { class: "quiet" }, "–")],
    ["Died", ({ settled_at: at }) => instant(at)],
    ["Why", ({ reason, attempts }) => `${reason}, ${attempts} ${attempts === 1 ? "attempt" : "attempts"}`],
    ["Last status", ({ history }) => history.at(-1)?.status_code ?? el("span", { class: "quiet" }, "none")],
    ["Last error", ({ last_error: error }) => error ?? el("span", { class: "quiet" }, "–")],
  ];
}

function box(id, selected, draw) {
  const change = (event) => { choose(selected, id, event.currentTarget.checked); draw(); };
  const control = el("input", { type: "checkbox", "data-task": id, "aria-label": `Select ${id}`, on: { change } });
  control.checked = selected.has(id);
  return control;
}
