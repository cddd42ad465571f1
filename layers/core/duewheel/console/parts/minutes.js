// Minutes of statistics as cells of a heat map: how many tasks fell due, were called late, failed.

import { el } from "./elements.js";
import { instant, written } from "./instants.js";
import { table } from "./table.js";

export const MINUTE_MS = 60_000;
export const LATE_MS = 1000;

// One for each minute from `from` until `to`, in milliseconds; those without counts have nothing in them.
export function minuteCells(minutes, from, to) {
  const known = new Map();
  for (const minute of minutes) {
    const at = Date.parse(minute.at);
    const before = known.get(at) ?? { due: 0, late: 0, failed: 0 };
    known.set(at, { due: before.due + minute.created, late: before.late + lateOf(minute), failed: before.failed + minute.failed_attempts });
  }
  const count = Math.round((to - from) / MINUTE_MS);
  return Array.from({ length: count }, (_, index) => {
    const at = from + index * MINUTE_MS;
    return { at, until: at + MINUTE_MS, ...(known.get(at) ?? { due: 0, late: 0, failed: 0 }) };
  });
}

// A minute that is not counted yet, or still ahead.
export function unknownCell({ at, until }) {
  return { at, until, due: null, late: null, failed: null };
}

function lateOf({ lateness: { counts } }) {
  const isLate = (name) => name === "later" || Number(/^up_to_(\d+)_ms$/.exec(name)?.[1]) > LATE_MS;
  return Object.entries(counts).reduce((sum, [name, count]) => sum + (isLate(name) ? count : 0), 0);
}

export const PANELS = [
  { name: "due", said: "Due", of: ({ due }) => due },
  { name: "late", said: "Late", of: ({ late }) => late },
  { name: "failed", said: "Failed attempts", of: ({ failed }) => failed },
];

export function saidOfCell({ at, due, late, failed }) {
  const some = [[due, "due"], [late, "late"], [failed, failed === 1 ? "failed attempt" : "failed attempts"]];
  const said = some.filter(([count]) => count).map(([count, what]) => `${count.toLocaleString("en")} ${what}`);
  return `${written(new Date(at).toISOString()).slice(0, 16)}: ${said.join(", ") || "nothing"}`;
}

// The cells by `size` minutes, the latest first, those with nothing left out.
export function cellsTable(caption, cells, size) {
  const parts = [];
  for (let first = 0; first < cells.length; first += size) {
    const some = cells.slice(first, first + size);
    const sum = (name) => some.reduce((total, cell) => total + (cell[name] ?? 0), 0);
    parts.push({ at: some[0].at, due: sum("due"), late: sum("late"), failed: sum("failed") });
  }
  const columns = [
    ["From", ({ at }) => instant(new Date(at).toISOString())],
    ["Due", ({ due }) => due.toLocaleString("en")],
    ["Late", ({ late }) => late.toLocaleString("en")],
    ["Failed attempts", ({ failed }) => failed.toLocaleString("en")],
  ];
  const some = parts.filter(({ due, failed }) => due + failed > 0).reverse();
  return el("details", {}, el("summary", {}, "As a table"), table(caption, columns, some, { key: ({ at }) => at }));
}
