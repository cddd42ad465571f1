// Minutes as cells that are the darker the more there was in them. The whole map is one stop of the keyboard, from which
// arrows go from minute to minute; the values of the minute under it or under the mouse are written beside it.

import { el, svg } from "./elements.js";

const LEVELS = 4;
const GAP = 0.12; // of a cell
const SCALE_MIN = 10; // so that a single one is not as dark as the worst
const PAGE = 10;

// panels: [{name, said, of: (cell) => number or null where it is not known}], each a grid of the same cells, `columns` of
// them in a row. `told` is the index of the cell that is described, `text` its description. `state` has the cell under
// the pointer, {picked, hovered, redraw}, by its instant `at`.
export function heat({ label, cells, columns, panels, told, text, state, rowNames = [], mark = null }) {
  const rows = Math.ceil(cells.length / columns);
  return el(
    "div",
    {
      class: rows > 1 ? "heat" : "heat strips", role: "slider", tabindex: "0", "aria-label": label,
      "aria-valuemin": "0", "aria-valuemax": String(cells.length - 1), "aria-valuenow": String(told), "aria-valuetext": text,
      on: listeners(cells, columns, rows, told, state),
    },
    panels.filter(({ of }) => cells.some((cell) => (of(cell) ?? null) !== null)).map((panel) => drawn(panel, cells, { columns, rows, told, rowNames, mark })),
  );
}

// The index of the cell that the viewer points at; until there is one, `first`.
export function pointedCell({ picked, hovered }, cells, first) {
  const at = hovered ?? picked;
  const index = at === null ? -1 : cells.findIndex((cell) => cell.at === at);
  return index < 0 ? first : index;
}

function drawn({ name, said, of }, cells, { columns, rows, told, rowNames, mark }) {
  const most = Math.max(0, ...cells.map((cell) => of(cell) ?? 0));
  const shapes = Array.from({ length: LEVELS }, (_, index) => {
    const isOfLevel = (cell) => levelOf(of(cell), Math.max(most, SCALE_MIN)) === index + 1;
    return svg("path", { class: `level-${index + 1}`, d: cells.map((cell, at) => (isOfLevel(cell) ? cellAt(at, columns) : "")).join("") });
  });
  const nothing = svg("path", { class: "none", d: cells.map((cell, at) => (of(cell) === 0 ? cellAt(at, columns) : "")).join("") });
  const ring = svg("path", { class: "told", d: (of(cells[told]) ?? null) === null ? "" : cellAt(told, columns) });
  const line = mark !== null && svg("line", { class: "mark", x1: mark, x2: mark, y1: 0, y2: rows });
  return el(
    "div",
    { class: `panel heat-${name}` },
    el("p", { class: "panel-name" }, said, " ", el("span", { class: "quiet" }, most === 0 ? "none" : `most: ${most.toLocaleString("en")}`)),
    el(
      "div",
      { class: "panel-rows" },
      rows > 1 && el("div", { class: "row-names", "aria-hidden": "true" }, rowNames.map((text) => el("span", {}, text))),
      svg("svg", { viewBox: `0 0 ${columns} ${rows}`, preserveAspectRatio: "none", "data-rows": rows }, nothing, shapes, line, ring),
    ),
  );
}

// From the least to the most by their roots: a minute of a hundred tasks hides none of one.
function levelOf(count, most) {
  if (!count) return 0;
  return Math.max(1, Math.ceil(LEVELS * Math.sqrt(count / most)));
}

function cellAt(index, columns) {
  const [x, y] = [index % columns, Math.floor(index / columns)];
  return `M${x + GAP} ${y + GAP}h${1 - 2 * GAP}v${1 - 2 * GAP}h${2 * GAP - 1}z`;
}

function listeners(cells, columns, rows, told, state) {
  const point = (how, index) => {
    const at = index === null ? null : cells[index].at;
    if (state[how] === at) return;
    state[how] = at;
    state.redraw();
  };
  const under = ({ target, clientX, clientY }) => {
    const grid = target.closest?.("svg");
    if (!grid) return null;
    const { left, top, width, height } = grid.getBoundingClientRect();
    const index = within(Math.floor(((clientX - left) / width) * columns), columns) + columns * within(Math.floor(((clientY - top) / height) * rows), rows);
    return Math.min(index, cells.length - 1);
  };
  return {
    keydown: (event) => {
      const index = byKey(event.key, told, cells.length - 1, rows > 1 ? columns : 1);
      if (index === null) return;
      event.preventDefault();
      state.hovered = null; // the mouse lies where it lay
      point("picked", index);
    },
    pointermove: (event) => point("hovered", under(event)),
    pointerleave: () => point("hovered", null),
    click: (event) => { if (under(event) !== null) point("picked", under(event)); },
  };
}

function within(number, count) {
  return Math.min(count - 1, Math.max(0, number));
}

function byKey(key, now, last, row) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -row, ArrowDown: row, PageUp: -PAGE * row, PageDown: PAGE * row, Home: -Infinity, End: Infinity };
  if (!(key in steps)) return null;
  return Math.min(last, Math.max(0, now + steps[key]));
}
