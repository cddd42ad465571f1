// Rows of a list that the viewer selects, by their tasks' ids.

import { el } from "./elements.js";

// {ids, column, toggle, areAll, forgetOthers}; `changed` is called after each choice.
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
  const put = (tasks, isChosen) => {
    for (const { task_id: id } of tasks) choose(id, isChosen);
    for (const control of document.querySelectorAll("[data-task]")) control.checked = ids.has(control.dataset.task);
    changed();
  };
  const forgetOthers = (tasks) => {
    const shown = new Set(tasks.map(({ task_id: id }) => id));
    for (const id of ids) if (!shown.has(id)) ids.delete(id);
  };
  return { ids, column: ["Select", box], areAll, toggle: (tasks) => put(tasks, !areAll(tasks)), forgetOthers };
}
