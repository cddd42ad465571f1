// The last 24 hours of a business by the minute: a row for each hour.

import { el } from "../../parts/elements.js";
import { heat, pointedCell } from "../../parts/heat.js";
import { written } from "../../parts/instants.js";
import { cellsTable, MINUTE_MS, minuteCells, PANELS, saidOfCell, unknownCell } from "../../parts/minutes.js";
import { tasksHref } from "../wheel/wheel_forecast.js";

const HOUR_MINUTES = 60;
const HOURS = 24;

// `day`: the statistics of the last 24 hours. `state` is that of a heat map. Its last row ends with the present hour, so
// that the columns are the minutes of an hour.
export function dayByMinute(day, state) {
  const to = hourAfter(Date.parse(day.to));
  const known = Date.parse(day.to);
  const cells = minuteCells(day.minutes, to - HOURS * HOUR_MINUTES * MINUTE_MS, to).map((cell) => (cell.at < known ? cell : unknownCell(cell)));
  const last = cells.findLastIndex(({ due, failed }) => due + failed > 0);
  const told = pointedCell(state, cells, Math.max(0, last));
  const text = saidOfCell(cells[told]);
  const rowNames = Array.from({ length: HOURS }, (_, hour) => written(new Date(cells[hour * HOUR_MINUTES].at).toISOString()).slice(11, 13));
  const label = "The last 24 hours by the minute";
  return el(
    "section",
    { "aria-labelledby": "by-minute" },
    el("h2", { id: "by-minute" }, "By the minute"),
    heat({ label, cells, columns: HOUR_MINUTES, panels: PANELS, told, text, state, rowNames }),
    el("p", { class: "readout" }, text, " · ", el("a", { href: tasksHref(day.biz_type, cells[told].at, cells[told].until) }, "tasks due then")),
    el("p", { class: "hint" }, "A row is an hour of your zone, a column a minute. Late: delivered more than a second after the due instant."),
    cellsTable("The last 24 hours by the hour", cells, HOUR_MINUTES),
  );
}

// The beginning of the next hour of the viewer's zone, which need not be one of UTC.
function hourAfter(at) {
  const minutes = new Date(at - 1).getMinutes();
  return Math.floor((at - 1) / MINUTE_MS) * MINUTE_MS + (HOUR_MINUTES - minutes) * MINUTE_MS;
}
