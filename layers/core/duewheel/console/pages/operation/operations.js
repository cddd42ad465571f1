// Operations on many tasks: those that are under way, and the latest that have ended.

import { businessField } from "../../parts/business_field.js";
import { el, fill } from "../../parts/elements.js";
import { choice, form } from "../../parts/form.js";
import { instant } from "../../parts/instants.js";
import { go, link } from "../../parts/router.js";
import { section } from "../../parts/section.js";
import { call } from "../../parts/service.js";
import { empty } from "../../parts/states.js";
import { lookedAt, pager, table } from "../../parts/table.js";
import { hasEnded, nameOf, outcomeOf, progressOf, stateOf } from "./operation_view.js";

const EVERY_MS = 3000;
const STATES = [["", "any"], "running", "stopping", "stopped", "done", "failed"];

export async function operationsPage({ place, query, signal }) {
  const list = section("", EVERY_MS, signal, async () => {
    const [underWay, page] = await Promise.all([running(query, signal), operations(query, signal)]);
    return listed(query, underWay, page);
  });
  const hint = el("p", { class: "hint" }, "An operation changes many tasks. Start one from the ", el("a", { href: link(["tasks"], { biz_type: query.biz_type }) }, "list of tasks"), ".");
  fill(place, el("h1", {}, "Operations"), hint, filterForm(query, signal), list.whole);
  await list.run();
}

function filterForm(query, signal) {
  const fields = el("div", { class: "filters" }, businessField(query.biz_type ?? "", signal), choice("state", "State", STATES, query.state ?? ""));
  return form(fields, "Filter", async (given) => go(["operations"], given), { "aria-label": "Filter", class: "search" });
}

async function operations({ biz_type, state, cursor }, signal) {
  return (await call("GET", ["operations"], { query: { biz_type, state, cursor }, signal })).members;
}

// Beside the first page of all, since the list is in the order in which they were started.
async function running({ biz_type, state, cursor }, signal) {
  if (state || cursor) return [];
  return (await operations({ biz_type, state: "running" }, signal)).operations;
}

function listed(query, running, { operations: found, cursor, looked_at: looked }) {
  const known = new Set(running.map(({ operation_id: id }) => id));
  const others = found.filter((one) => !known.has(one.operation_id));
  const underWay = query.state ? [] : [...running, ...others.filter((one) => !hasEnded(one))];
  const rest = others.filter((one) => !underWay.includes(one));
  const here = (next) => link(["operations"], { ...query, cursor: next });
  if (underWay.length + rest.length === 0 && cursor === null) return [empty(query.state || query.biz_type ? "No operation is as you look for it." : "There has been no operation in the last 30 days.")];
  return [
    underWay.length > 0 && part("Under way", underWay, query, ["Progress", (one) => el("div", { class: "operation" }, progressOf(one))]),
    rest.length > 0 && part(query.state ? "Found" : "Latest", rest, query, ["Outcome", (one) => outcomeOf(one)]),
    el("div", { "data-key": "looked-at" }, cursor !== null && lookedAt(looked, "operations")),
    (query.cursor || cursor !== null) && el("div", { "data-key": "pager" }, pager(query.cursor, cursor, here)),
  ];
}

function part(title, rows, { biz_type: business }, outcome) {
  const columns = [
    ["Operation", (one) => el("a", { href: link(["operations", one.operation_id]) }, nameOf(one))],
    ...(business ? [] : [["Business", ({ biz_type: of }) => el("a", { href: link(["operations"], { biz_type: of }) }, of)]]),
    ["State", stateOf],
    outcome,
    ["Started", ({ created_at: at }) => instant(at)],
    ["By", ({ created_by: by }) => by],
  ];
  return el("section", { "data-key": title, "aria-label": title }, el("h2", {}, title), table(title, columns, rows, { key: ({ operation_id: id }) => id }));
}
