// A table for wide pages that reads as a list of cards on narrow ones.

import { el } from "./elements.js";

// columns: [["Due", (row) => …], …]; `key` tells rows apart when they are shown anew.
export function table(caption, columns, rows, { key, row: rowAttributes = () => ({}) } = {}) {
  return el(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, columns.map(([name]) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map((row) => tableRow(columns, row, key, rowAttributes))),
    ),
  );
}

function tableRow(columns, row, key, rowAttributes) {
  const attributes = { ...rowAttributes(row), "data-key": key ? key(row) : null };
  return el("tr", attributes, columns.map(([name, cell]) => el("td", { "data-label": name }, el("div", {}, cell(row)))));
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

export function badge(text, kind = text) {
  return el("span", { class: `badge ${kind}` }, text);
}
