// The last hour and the next as one line of minutes: what fell due, what was late or failed, what is expected.

import { axis } from "../../parts/chart.js";
import { el } from "../../parts/elements.js";
import { heat, pointedCell } from "../../parts/heat.js";
import { written } from "../../parts/instants.js";
import { cellsTable, MINUTE_MS, minuteCells, PANELS, saidOfCell, unknownCell } from "../../parts/minutes.js";

const HOUR_MS = 3_600_000;
const EXPECTED = { name: "expected", said: "Expected", of: ({ expected }) => expected ?? null };

// `to` of the counted minutes is two or three minutes ago: those between that and now are not known.
export function hoursPart(wheel, found, state) {
  const counted = found.answer;
  const now = Date.parse(counted?.now ?? wheel.answer?.now);
  if (Number.isNaN(now)) return null;
  const minute = Math.floor(now / MINUTE_MS) * MINUTE_MS;
  const past = counted === null ? [] : minuteCells(counted.minutes, minute - HOUR_MS, minute).map((cell) => (cell.at < Date.parse(counted.to) ? cell : unknownCell(cell)));
  const cells = [...(counted === null ? minuteCells([], minute - HOUR_MS, minute).map(unknownCell) : past), ...ahead(wheel.answer, minute)];
  const told = pointedCell(state, cells, Math.max(0, past.findLastIndex(({ due }) => due !== null)));
  const text = said(cells[told]);
  return el(
    "section",
    { "aria-labelledby": "hours" },
    el("h2", { id: "hours" }, "The last hour and the next"),
    heat({ label: "The last hour and the next, by the minute", cells, columns: cells.length, panels: [...PANELS, EXPECTED], told, text, state, mark: cells.length / 2 }),
    axis(cells[0].at, cells.at(-1).until),
    el("p", { class: "readout" }, text),
    el("p", { class: "hint" }, "By the minute in which tasks first fell due. Late: delivered more than a second after the due instant. A minute is counted two to three minutes after it began."),
    cellsTable("The last hour", past, 10),
  );
}

function ahead(wheel, minute) {
  const byMinute = new Map((wheel?.forecast.minutes ?? []).map(({ at, tasks }) => [Date.parse(at), tasks]));
  return Array.from({ length: 60 }, (_, index) => {
    const at = minute + index * MINUTE_MS;
    return { ...unknownCell({ at, until: at + MINUTE_MS }), expected: wheel === null ? null : byMinute.get(at) ?? 0 };
  });
}

function said(cell) {
  if (cell.due !== null) return saidOfCell(cell);
  const at = written(new Date(cell.at).toISOString()).slice(0, 16);
  if (cell.expected === undefined || cell.expected === null) return `${at}: not counted yet`;
  return `${at}: ${cell.expected === 0 ? "few" : `about ${cell.expected.toLocaleString("en")}`} expected`;
}
