// A table for wide pages; on narrow ones each row is a few lines, without what is empty.

import { el } from "./elements.js";
import { icon } from "./icons.js";

const NOTHING = new Set(["", "–"]);

// columns: [["Due", (row) => …], …]; a third member says what leads a row where there is no room for columns: "name" (of
// none said, the first one) or "state". `key` tells rows apart when they are shown anew.
export function table(caption, columns, rows, { key, row: rowAttributes = () => ({}) } = {}) {
  return el(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, columns.map(([name]) => (name === "" ? el("td") : el("th", { scope: "col" }, name))))),
      el("tbody", {}, rows.map((row) => tableRow(columns, row, key, rowAttributes))),
    ),
  );
}

function tableRow(columns, row, key, rowAttributes) {
  const attributes = { ...rowAttributes(row), "data-key": key ? key(row) : null };
  const named = Math.max(0, columns.findIndex(([, , role]) => role === "name"));
  return el("tr", attributes, columns.map(([name, cell, role], index) => tableCell(name, el("div", {}, cell(row)), index === named ? "name" : role)));
}

function tableCell(name, content, role) {
  const isNone = NOTHING.has(content.textContent.trim()) && content.querySelector("input, button, svg") === null;
  return el("td", { "data-label": name, class: [role, isNone && "none"].filter(Boolean).join(" ") || null }, content);
}

// The way on from a page of a list, and back to its beginning. Behind, the browser's own way.
export function pager(here, next, link) {
  return el(
    "p",
    { class: "pager" },
    here && el("a", { href: link(null) }, "First page"),
    next ? el("a", { href: link(next), rel: "next" }, "Next page") : el("span", { class: "quiet" }, "End of the list"),
  );
}

// What a page was looked for in, where the list goes on: few of many may match. Lists without filters do not say it.
export function lookedAt(looked, what) {
  if (!looked) return null;
  const among = looked.businesses === 1 ? "" : ` of ${looked.businesses} businesses`;
  return el("p", { class: "quiet" }, `This page looked at ${looked.records} ${what}${among}.`);
}

// Names and values, one under the other.
export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value ?? el("span", { class: "quiet" }, "–"))]));
}

// A state by its words, and by a shape of its own: the colour says nothing that these do not.
export function badge(text, kind = text) {
  return el("span", { class: `badge ${kind}` }, icon(kind), text);
}
