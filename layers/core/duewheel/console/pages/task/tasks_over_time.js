// What became of tasks, over time: bars of some minutes each, and the same as a table.

import { axis, chart, legend, pointed } from "../../parts/chart.js";
import { el } from "../../parts/elements.js";
import { instant, written } from "../../parts/instants.js";
import { table } from "../../parts/table.js";
import { tasksHref } from "../wheel/wheel_forecast.js";
import { summed } from "../wheel/wheel_statistics.js";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const BIN_MINUTES = { 1: 1, 6: 5, 24: 15 }; // by the hours that are looked at
const LAYERS = [
  layer("delivered"), layer("pending", "pending: parked, or to be tried again"), layer("cancelled"), layer("expired"), layer("dead"),
  { name: "failed_attempts", said: "failed attempts (below the line)", of: (bin) => bin.failed_attempts, below: true },
];

function layer(name, said = name) {
  return { name, said, of: (bin) => bin[name] };
}

// Of `hours` before `to`, in milliseconds; of one business, where `biz_type` names it: then the bars lead
// to its tasks. `state` is that of a chart.
export function tasksOverTime(minutes, to, asked, state) {
  const points = bins(minutes, asked.hours, to);
  const [from, end] = [points[0].at, points.at(-1).until];
  const told = pointed(state, points, points.findLastIndex(hasSome));
  const text = saidOf(points[told]);
  return [
    legend(LAYERS),
    chart({ label: "What became of the tasks, over time", from, to: end, points, layers: LAYERS, told, text, state }),
    axis(from, end),
    el("p", { class: "readout" }, text, asked.biz_type && [" · ", el("a", { href: tasksHref(asked.biz_type, points[told].at, points[told].until) }, "tasks due then")]),
    el("details", {}, el("summary", {}, "As a table"), asTable(points, asked)),
  ];
}

function hasSome({ created, failed_attempts: failed }) {
  return created + failed > 0;
}

function saidOf(bin) {
  const [from, until] = [bin.at, bin.until].map((at) => written(new Date(at).toISOString()).slice(0, 16));
  const some = LAYERS.filter(({ of }) => of(bin) > 0).map(({ name, of }) => `${of(bin).toLocaleString("en")} ${nameFor(name, of(bin))}`);
  return `${from} to ${until.slice(11)}: ${some.join(", ") || "nothing"}`;
}

function nameFor(name, count) {
  if (name !== "failed_attempts") return name;
  return count === 1 ? "failed attempt" : "failed attempts";
}

function asTable(points, { biz_type: name }) {
  const from = ({ at, until }) => {
    const said = instant(new Date(at).toISOString());
    return name ? el("a", { href: tasksHref(name, at, until) }, said) : said;
  };
  const columns = [["From", from], ...LAYERS.map(({ name: column, of }) => [nameFor(column), (bin) => of(bin).toLocaleString("en")])];
  return table("What became of the tasks", columns, points.filter(hasSome).reverse(), { key: ({ at }) => at });
}

// Bins that begin at round minutes; the first and the last may reach beyond the hours.
function bins(minutes, hours, to) {
  const size = BIN_MINUTES[hours] * MINUTE_MS;
  const first = Math.floor((to - hours * HOUR_MS) / size);
  const count = Math.ceil(to / size) - first;
  const within = Array.from({ length: count }, () => []);
  for (const minute of minutes) within[Math.floor(Date.parse(minute.at) / size) - first].push(minute);
  return within.map((some, index) => ({ at: (first + index) * size, until: (first + index + 1) * size, ...summed(some) }));
}
