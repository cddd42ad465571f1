// What has become of the tasks that came up: over time, how late they were, and by business.

import { el } from "../../parts/elements.js";
import { span } from "../../parts/instants.js";
import { link } from "../../parts/router.js";
import { empty, loading, problem } from "../../parts/states.js";
import { facts, pager } from "../../parts/table.js";
import { tasksOverTime } from "../task/tasks_over_time.js";
import { businessesTable } from "./wheel_businesses.js";
import { BUSINESSES_SHOWN, latenessUpTo, minutesWithin, summed } from "./wheel_statistics.js";

const SHARES = [["p50", 0.5], ["p90", 0.9], ["p99", 0.99]];

export function past(state, asked) {
  return el(
    "section",
    { "aria-labelledby": "past" },
    el("h2", { id: "past" }, asked.hours === 1 ? "The last hour" : `The last ${asked.hours} hours`, asked.biz_type && [" of ", el("code", {}, asked.biz_type)]),
    state.problem !== null && problem(state.problem),
    state.answer === null ? state.problem === null && loading() : known(state, asked),
  );
}

function known(state, asked) {
  const { rows, next, to } = state.answer;
  if (rows.length === 0) return asked.cursor ? [empty("No more businesses."), wayOn(asked, next)] : noBusiness();
  if (asked.biz_type && rows[0].problem !== null) return problem(rows[0].problem);
  const counted = rows.filter(({ minutes }) => minutes !== null);
  const minutes = minutesWithin(counted, asked.hours, to);
  return [
    el("p", { class: "quiet" }, whose(counted, rows, next, asked)),
    counted.length === 0 ? null : minutes.length === 0 ? empty("No task fell due.") : [tasksOverTime(minutes, to, asked, state), lateness(minutes)],
    businessesTable(state.answer, asked),
    (asked.cursor || next) && wayOn(asked, next),
  ];
}

function noBusiness() {
  return empty("No business within reach has settings.", el("p", {}, "One that has tasks and no settings is shown by its name."));
}

function whose(counted, rows, next, { biz_type: name, cursor }) {
  const failed = rows.length - counted.length;
  const left = failed === 0 ? "" : ` ${failed} of them could not be counted.`;
  if (name) return "Tasks count in the minute in which they first fell due.";
  const one = rows.length === 1 ? "1 business" : `${rows.length} businesses`;
  const some = next || cursor ? `${one} of more: a page has ${BUSINESSES_SHOWN}, in the order of names.` : `${one}: all within reach that have settings.`;
  return `${some} Tasks count in the minute in which they first fell due.${left}`;
}

function wayOn(asked, next) {
  const hours = asked.hours === 1 ? null : asked.hours;
  return pager(asked.cursor, next, (cursor) => link(["wheel"], { hours, cursor }));
}

function lateness(minutes) {
  const { delivered, lateness: late } = summed(minutes);
  if (delivered === 0) return null;
  const said = SHARES.map(([name, share]) => [name, `up to ${span(latenessUpTo(share, late))}`]);
  return el(
    "section",
    { "aria-labelledby": "lateness" },
    el("h2", { id: "lateness" }, "Lateness of the delivered"),
    facts([...said, ["Max", span(late.max_ms)]]),
    el("p", { class: "hint" }, "How long after its due instant the delivering call began. It is counted in classes, so a percentile is known up to the bound of its class, or to the maximum where that is less."),
  );
}
