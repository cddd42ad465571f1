// Rows of a list that the viewer selects, by their tasks' ids.

import { el } from "./elements.js";

// {ids, column, areAll, toggle, clear, forgetOthers}; `changed` is called after each choice.
export function selection(changed) {
  const ids = new Set();
  const choose = (id, isChosen) => (isChosen ? ids.add(id) : ids.delete(id));
  const areAll = (tasks) => tasks.length > 0 && tasks.every(({ task_id: id }) => ids.has(id));
  const box = ({ task_id: id }) => {
    const change = (event) => { choose(id, event.currentTarget.checked); changed(); };
    const control = el("input", { type: "checkbox", "data-task": id, "aria-label": `Select ${id}`, on: { change } });
    control.checked = ids.has(id);
    return control;
  };
  const shown = () => {
    for (const control of document.querySelectorAll("[data-task]")) control.checked = ids.has(control.dataset.task);
    changed();
  };
  const toggle = (tasks) => {
    const isToBe = !areAll(tasks);
    for (const { task_id: id } of tasks) choose(id, isToBe);
    shown();
  };
  const clear = () => { ids.clear(); shown(); };
  const forgetOthers = (tasks) => {
    const known = new Set(tasks.map(({ task_id: id }) => id));
    for (const id of ids) if (!known.has(id)) ids.delete(id);
  };
  return { ids, column: ["Select", box], areAll, toggle, clear, forgetOthers };
}
