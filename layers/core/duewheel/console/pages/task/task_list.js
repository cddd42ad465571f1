// A page of tasks: by due instant, or under a key prefix.

import { el } from "../../parts/elements.js";
import { labelLinks, labelTexts } from "../../parts/labels.js";
import { instant } from "../../parts/instants.js";
import { link } from "../../parts/router.js";
import { call } from "../../parts/service.js";
import { empty } from "../../parts/states.js";
import { badge, lookedAt, pager, table } from "../../parts/table.js";

const FILTER = ["status", "flow_key", "timer_id", "due_from", "due_to", "order"];
const EMPTY_PAGES_MAX = 5; // searched at once before the viewer is asked to go on

// {tasks, cursor}. Pages with nothing on them are passed, up to a number.
export async function taskPageOf(query, signal) {
  let page = { tasks: [], cursor: query.cursor };
  for (let looked = 0; looked < EMPTY_PAGES_MAX; looked += 1) {
    page = (await call("GET", ...asked(query, page.cursor, signal))).members;
    if (page.tasks.length > 0 || page.cursor === null) break;
  }
  return page;
}

function asked(query, cursor, signal) {
  const { biz_type, key_prefix, label } = query;
  if (isByKey(query)) return [["businesses", biz_type, "tasks"], { query: { key_prefix, cursor }, signal }];
  const filter = Object.fromEntries(FILTER.map((name) => [name, query[name]]));
  return [["tasks"], { query: { biz_type, key_prefix, label: labelTexts(label), ...filter, cursor }, signal }];
}

// A key prefix alone: the live tasks under it, in the order of their keys, which needs no list index.
export function isByKey({ biz_type, key_prefix, label, ...query }) {
  return Boolean(biz_type && key_prefix && !label && !FILTER.some((name) => query[name]));
}

// `select`: the column of the viewer's selection, where there is one.
export function taskList({ tasks, cursor, looked_at }, query, select = null) {
  const here = (next) => link(["tasks"], { ...query, cursor: next });
  const many = tasks.length === 1 ? "1 task" : `${tasks.length} tasks`;
  const isAll = !query.cursor && cursor === null;
  if (tasks.length === 0 && isAll) return [empty(isByKey(query) ? "No live task exists under this prefix." : "No task is as you look for it.")];
  return [
    tasks.length > 0 && el("p", { class: "quiet", "data-key": "count" }, isAll ? many : `${many} on this page`),
    tasks.length > 0 && el("div", { "data-key": "tasks" }, table("Tasks", columns(tasks, query, select), tasks, { key: (task) => task.task_id })),
    tasks.length === 0 && el("div", { "data-key": "none" }, empty(cursor === null ? "Nothing on this page." : "Nothing on this page, but the list goes on.")),
    cursor !== null && el("div", { "data-key": "looked-at" }, lookedAt(looked_at, "tasks")),
    el("div", { "data-key": "pager" }, pager(query.cursor, cursor, here)),
  ];
}

function columns(tasks, query, select) {
  const ofBusiness = ["Business", ({ biz_type }) => el("a", { href: link(["tasks"], { ...query, biz_type, cursor: null }) }, biz_type)];
  const ofLabels = ["Labels", ({ labels }) => labelLinks(labels, ["tasks"], query)];
  return [...(select ? [select] : []), ...(query.biz_type ? [] : [ofBusiness]), ...COLUMNS, ...(tasks.some(({ labels }) => labels) ? [ofLabels] : [])];
}

const COLUMNS = [
  ["Task", (task) => el("a", { href: link(["tasks", task.task_id]), class: "mono" }, task.key ?? task.task_id), "name"],
  ["Status", (task) => statusOf(task), "state"],
  ["Due", (task) => instant(task.due_at)],
  ["Next attempt", (task) => (task.next_at === task.due_at ? el("span", { class: "quiet" }, "–") : instant(task.next_at))],
  ["Attempts", (task) => String(task.attempts)],
  ["Last error or reason", (task) => told(task)],
];

export function statusOf(task) {
  const more = task.parked ? "parked" : task.paused && "paused";
  return [badge(task.status), more && " ", more && badge(more)];
}

function told(task) {
  const said = task.last_error || (task.status === "pending" || task.status === "delivered" ? null : task.reason);
  return said || el("span", { class: "quiet" }, "–");
}
