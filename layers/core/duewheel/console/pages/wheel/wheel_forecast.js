// The next hour by minute, as far as the forecast knows it.

import { axis, chart, pointed } from "../../parts/chart.js";
import { el } from "../../parts/elements.js";
import { written } from "../../parts/instants.js";
import { link } from "../../parts/router.js";
import { empty } from "../../parts/states.js";
import { table } from "../../parts/table.js";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const SECONDS_TOLD = 8; // of a minute in the table: the most crowded
const LAYERS = [{ name: "expected", of: ({ tasks }) => tasks }];

export function forecast(state, asked) {
  const { now, forecast: expected } = state.answer;
  const points = expected.minutes.map(({ at, tasks }) => ({ at: Date.parse(at), until: Date.parse(at) + MINUTE_MS, tasks }));
  return el(
    "section",
    { "aria-labelledby": "next-hour" },
    el("h2", { id: "next-hour" }, "The next hour"),
    el("p", { class: "quiet" }, `An estimate, of all businesses by the minute. Single tasks are noted by chance, one in 64, so minutes and seconds with fewer than 640 are left out. Tasks cancelled or moved since are still in it.`),
    points.length === 0 ? empty("No minute of the next hour is expected to have 640 tasks or more.") : drawn(state, asked, points, Date.parse(now)),
  );
}

function drawn(state, asked, points, now) {
  const from = Math.min(now, points[0].at);
  const to = Math.max(now + HOUR_MS, points.at(-1).until);
  const told = pointed(state, points, mostCrowded(points));
  const point = points[told];
  const text = `${written(iso(point.at)).slice(11, 16)}: about ${point.tasks.toLocaleString("en")} tasks expected`;
  return [
    chart({ label: "Tasks expected in the next hour, by minute", from, to, points, layers: LAYERS, told, text, state }),
    axis(from, to),
    el("p", { class: "readout" }, text, waysOn(asked, point)),
    el("details", {}, el("summary", {}, "As a table"), asTable(state.answer.forecast.minutes, asked)),
  ];
}

// The point that is described before one is chosen.
function mostCrowded(points) {
  return points.reduce((best, { tasks }, index) => (tasks > points[best].tasks ? index : best), 0);
}

function waysOn({ biz_type: name }, { at }) {
  if (!name) return el("span", { class: "quiet" }, " · choose a business to see its tasks");
  return [" · tasks of ", el("code", {}, name), " due in ", el("a", { href: tasksHref(name, at, at + MINUTE_MS) }, "this minute")];
}

export function tasksHref(name, from, to) {
  return link(["tasks"], { biz_type: name, due_from: iso(from), due_to: iso(to) });
}

function asTable(minutes, { biz_type: name }) {
  const minuteOf = ({ at }) => {
    const said = el("time", { datetime: at, title: at }, written(at).slice(0, 16));
    return name ? el("a", { href: tasksHref(name, Date.parse(at), Date.parse(at) + MINUTE_MS) }, said) : said;
  };
  const columns = [["Minute", minuteOf], ["Expected", ({ tasks }) => tasks.toLocaleString("en")], ["Of these in second", (minute) => secondsSaid(minute, name)]];
  return table("The next hour", columns, minutes, { key: ({ at }) => at });
}

function secondsSaid({ at, seconds }, name) {
  const known = Object.entries(seconds).sort(([, a], [, b]) => b - a);
  const said = known.slice(0, SECONDS_TOLD).map(([second, tasks]) => {
    const from = Date.parse(at) + Number(second) * 1000;
    const text = `:${second.padStart(2, "0")}`;
    return el("span", { class: "second" }, name ? el("a", { href: tasksHref(name, from, from + 1000) }, text) : text, ` ${tasks.toLocaleString("en")}`);
  });
  return [said.map((one) => [one, " "]), known.length > SECONDS_TOLD && el("span", { class: "quiet" }, `and ${known.length - SECONDS_TOLD} more seconds`)];
}

function iso(at) {
  return new Date(at).toISOString();
}
