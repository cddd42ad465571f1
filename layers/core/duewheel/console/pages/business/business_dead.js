// The dead tasks of a business by the instant and the cause of their death, and their redrive.

import { el, fill } from "../../parts/elements.js";
import { choice, form, instantField, text } from "../../parts/form.js";
import { instant, viewersZone } from "../../parts/instants.js";
import { go, link } from "../../parts/router.js";
import { section } from "../../parts/section.js";
import { call } from "../../parts/service.js";
import { empty } from "../../parts/states.js";
import { pager, table } from "../../parts/table.js";
import { bulk } from "../task/task_bulk.js";
import { businessHead } from "./business_head.js";

const EVERY_MS = 10_000;
const ON_A_PAGE = 50;
const FILTER = ["since", "until", "reason", "status_code", "last_error"];
const DEATHS = ["stopped", "attempts exhausted", "older than max_age_seconds"];

export async function businessDeadPage({ place, parameters: { name }, query, signal }) {
  const filter = Object.fromEntries(FILTER.map((member) => [member, query[member]]).filter(([, value]) => value));
  const many = bulk({ biz_type: name, actions: ["redrive"], filter: () => filterOf(filter) }, signal, () => list.now());
  const list = section("", EVERY_MS, signal, async () => {
    const asked = { ...filter, limit: ON_A_PAGE, cursor: query.cursor };
    const read = (await call("GET", ["businesses", name, "dead"], { query: asked, signal })).members;
    many.draw(read);
    return listed({ name, filter, here: query.cursor, read, column: many.column });
  });
  fill(place, businessHead(name, "Dead tasks"), filterForm(name, query), many.place, el("div", { class: "dead" }, list.whole));
  await list.run();
}

// Of an operation. What is no number is for the service to refuse.
function filterOf({ status_code: status, ...rest }) {
  return { status: "dead", ...rest, ...(status && { status_code: /^\d+$/.test(status) ? Number(status) : status }) };
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

function listed({ name, filter, here, read: { tasks, cursor }, column }) {
  const pages = pager(here, cursor, (to) => link(["businesses", name, "dead"], { ...filter, cursor: to }));
  if (tasks.length > 0) return [table("Dead tasks", [column, ...COLUMNS], tasks, { key: ({ task_id: id }) => id }), pages];
  return [nothing(Object.keys(filter).length > 0, cursor), (here || cursor) && pages];
}

// A page looks at so many tasks and no more, so the filter may take none of them and some of the next.
function nothing(isFiltered, cursor) {
  if (cursor !== null) return empty("The filter takes none of the tasks that this page looked at; there are more.");
  return empty(isFiltered ? "The filter takes no dead task." : "No task of it is dead.");
}

const COLUMNS = [
  ["Task", ({ task_id: id }) => el("a", { class: "mono", href: link(["tasks", id]) }, id)],
  ["Key", ({ key }) => key ?? el("span", { class: "quiet" }, "–")],
  ["Died", ({ settled_at: at }) => instant(at)],
  ["Why", ({ reason }) => reason],
  ["Attempts", ({ attempts }) => attempts],
  ["Last status", ({ history }) => history.at(-1)?.status_code ?? el("span", { class: "quiet" }, "none")],
  ["Last error", ({ last_error: error }) => error ?? el("span", { class: "quiet" }, "–")],
];
