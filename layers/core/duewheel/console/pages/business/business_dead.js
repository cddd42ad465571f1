// The dead tasks of a business by the instant and the cause of their death, and their redrive.

import { el, fill } from "../../parts/elements.js";
import { choice, form, instantField, text } from "../../parts/form.js";
import { instant, viewersZone } from "../../parts/instants.js";
import { once } from "../../parts/once.js";
import { show } from "../../parts/refresh.js";
import { go, link } from "../../parts/router.js";
import { section } from "../../parts/section.js";
import { selection } from "../../parts/selection.js";
import { call } from "../../parts/service.js";
import { empty } from "../../parts/states.js";
import { pager, table } from "../../parts/table.js";
import { businessHead } from "./business_head.js";
import { redriveAll, redriveSelected } from "./business_redrive.js";

const EVERY_MS = 10_000;
const ON_A_PAGE = 50;
const FILTER = ["since", "until", "reason", "status_code", "last_error"];
const DEATHS = ["stopped", "attempts exhausted", "older than max_age_seconds"];

export async function businessDeadPage({ place, parameters: { name }, query, signal }) {
  const filter = Object.fromEntries(FILTER.map((member) => [member, query[member]]).filter(([, value]) => value));
  const [progress, bar] = [el("div"), el("div", { class: "buttons" })];
  const selected = selection(() => draw());
  let read = { tasks: [], cursor: null };
  const draw = () => show(bar, buttons({ read, selected, isFiltered: Object.keys(filter).length > 0, actions }));
  const list = section("", EVERY_MS, signal, async () => {
    const asked = { ...filter, limit: ON_A_PAGE, cursor: query.cursor };
    read = (await call("GET", ["businesses", name, "dead"], { query: asked, signal })).members;
    selected.forgetOthers(read.tasks);
    draw();
    return listed({ name, filter, here: query.cursor, read, selected });
  });
  const actions = {
    choose: () => selected.toggle(read.tasks),
    redrive: once((how) => how().finally(list.now)),
    selected: () => actions.redrive(() => redriveSelected({ name, ids: [...selected.ids], progress, signal })),
    all: () => actions.redrive(() => redriveAll({ name, filter, progress, signal })),
  };
  fill(place, businessHead(name, "Dead tasks"), filterForm(name, query), progress, bar, el("div", { class: "dead" }, list.whole));
  await list.run();
}

function filterForm(name, query) {
  const fields = el(
    "div",
    { class: "filters" },
    instantField("since", "Died from", query.since),
    instantField("until", "Died before", query.until),
    choice("reason", "Reason", [["", "any"], ...DEATHS], query.reason ?? ""),
    text("status_code", "Last status", query.status_code ?? "", { inputmode: "numeric" }),
    text("last_error", "Last error contains", query.last_error ?? ""),
  );
  const submit = async (values) => go(["businesses", name, "dead"], values);
  const clear = el("a", { class: "button", href: link(["businesses", name, "dead"]) }, "Clear");
  const hint = el("p", { class: "hint" }, `Instants are those of your zone, ${viewersZone()}.`);
  return form([fields, hint], "Filter", submit, { also: clear, "aria-label": "Filter" });
}

function buttons({ read: { tasks, cursor }, selected, isFiltered, actions }) {
  const isNothing = tasks.length === 0;
  const button = (text, disabled, click) => el("button", { type: "button", disabled, on: { click } }, text);
  return [
    button(selected.areAll(tasks) ? "Select none" : "Select all shown", isNothing, actions.choose),
    button(`Redrive ${selected.ids.size} selected`, selected.ids.size === 0, actions.selected),
    button(isFiltered ? "Redrive all that the filter takes" : "Redrive all", isNothing && cursor === null, actions.all),
  ];
}

function listed({ name, filter, here, read: { tasks, cursor }, selected }) {
  const pages = pager(here, cursor, (to) => link(["businesses", name, "dead"], { ...filter, cursor: to }));
  if (tasks.length > 0) return [table("Dead tasks", columns(selected), tasks, { key: ({ task_id: id }) => id }), pages];
  return [nothing(Object.keys(filter).length > 0, cursor), (here || cursor) && pages];
}

// A page looks at so many tasks and no more, so the filter may take none of them and some of the next.
function nothing(isFiltered, cursor) {
  if (cursor !== null) return empty("The filter takes none of the tasks that this page looked at; there are more.");
  return empty(isFiltered ? "The filter takes no dead task." : "No task of it is dead.");
}

function columns(selected) {
  return [
    selected.column,
    ["Task", ({ task_id: id }) => el("a", { class: "mono", href: link(["tasks", id]) }, id)],
    ["Key", ({ key }) => key ?? el("span", { class: "quiet" }, "–")],
    ["Died", ({ settled_at: at }) => instant(at)],
    ["Why", ({ reason }) => reason],
    ["Attempts", ({ attempts }) => attempts],
    ["Last status", ({ history }) => history.at(-1)?.status_code ?? el("span", { class: "quiet" }, "none")],
    ["Last error", ({ last_error: error }) => error ?? el("span", { class: "quiet" }, "–")],
  ];
}
