// Elements of the part of Markdown in which the documents are written. Text stays text: there is no markup in it.

import { el } from "../../parts/elements.js";
import { table } from "../../parts/table.js";

const FENCE = /^(\s*)```/;
const HEADING = /^(#{1,6}) (.*)$/;
const ITEM = /^(\s*)([-*]|\d+\.) (.*)$/;
const RULER = /^\|[\s|:-]+\|\s*$/;
const INLINE = /(`+)([\s\S]+?)\1|\*\*([\s\S]+?)\*\*|(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g;

// `hrefOf` tells where a link leads, null where to nothing.
export function markdown(text, hrefOf) {
  const lines = text.replace(/<!--[\s\S]*?-->/g, "").split("\n");
  return new Reader(lines, hrefOf).blocks();
}

class Reader {
  constructor(lines, hrefOf) {
    this.lines = lines;
    this.hrefOf = hrefOf;
    this.at = 0;
    this.heading = "";
    this.tables = 0;
    this.level = 0;
  }

  blocks() {
    const found = [];
    while (this.at < this.lines.length) {
      const line = this.lines[this.at];
      if (line.trim() === "") this.at += 1;
      else found.push(this.block(line));
    }
    return found;
  }

  block(line) {
    if (FENCE.test(line)) return this.code();
    if (line.startsWith("    ")) return this.indentedCode();
    if (HEADING.test(line)) return this.title(HEADING.exec(line));
    if (line.startsWith("|")) return this.table();
    if (ITEM.test(line)) return this.list();
    return el("p", {}, this.inline(this.taken((next) => next.trim() !== "" && !FENCE.test(next) && !HEADING.test(next) && !next.startsWith("|") && !ITEM.test(next)).join("\n").replace(/^> ?/gm, "")));
  }

  // The line here, and those behind it for which it holds.
  taken(holds) {
    const begin = this.at;
    do this.at += 1; while (this.at < this.lines.length && holds(this.lines[this.at]));
    return this.lines.slice(begin, this.at);
  }

  code() {
    const [, indent] = FENCE.exec(this.lines[this.at]);
    const inside = this.taken((next) => !FENCE.test(next)).slice(1);
    this.at += 1;
    return el("pre", { tabindex: "0" }, el("code", {}, inside.map((one) => one.slice(one.startsWith(indent) ? indent.length : 0)).join("\n")));
  }

  indentedCode() {
    const inside = this.taken((next) => next.startsWith("    "));
    return el("pre", { tabindex: "0" }, el("code", {}, inside.map((one) => one.slice(4)).join("\n")));
  }

  // No level is left out, whatever the document does.
  title([, marks, text]) {
    this.at += 1;
    this.level = Math.min(marks.length, this.level + 1);
    this.heading = plain(text);
    return el(`h${this.level}`, { "data-at": slug(text), tabindex: "-1" }, this.inline(text));
  }

  table() {
    const rows = this.taken((next) => next.startsWith("|")).filter((row) => !RULER.test(row)).map(cells);
    const [names, ...body] = rows;
    this.tables += 1;
    return table(`${this.heading} (table ${this.tables})`, names.map((name, index) => [plain(name), (row) => this.inline(row[index] ?? "")]), body);
  }

  // What is indented below an item belongs to it: more text, code, a list.
  list() {
    const [, indent, mark] = ITEM.exec(this.lines[this.at]);
    const items = [];
    while (this.at < this.lines.length) {
      const item = ITEM.exec(this.lines[this.at]);
      if (item === null || item[1] !== indent) break;
      const depth = indent.length + item[2].length + 1;
      const inside = this.taken((next) => next.trim() === "" ? this.goesOn(depth) : isIndented(next, indent.length + 2) || (!ITEM.test(next) && !HEADING.test(next) && !next.startsWith("|") && isIndented(next, indent.length + 1)));
      const lines = [item[3], ...inside.slice(1).map((one) => one.slice(Math.min(depth, one.length - one.trimStart().length)))];
      items.push(el("li", {}, loosened(new Reader(lines, this.hrefOf).blocks())));
      while (this.at < this.lines.length && this.lines[this.at].trim() === "" && ITEM.exec(this.lines[this.at + 1] ?? "")?.[1] === indent) this.at += 1;
    }
    return el(/\d/.test(mark) ? "ol" : "ul", {}, items);
  }

  // Whether the next line that is not empty is still of the item.
  goesOn(depth) {
    const next = this.lines.slice(this.at + 1).find((line) => line.trim() !== "");
    return next !== undefined && isIndented(next, depth);
  }

  inline(text) {
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(INLINE)) {
      const [whole, tick, code, strong, bang, label, target] = match;
      parts.push(text.slice(end, match.index), tick ? el("code", {}, code.trim().replaceAll("\\|", "|")) : strong !== undefined ? el("strong", {}, this.inline(strong)) : bang ? null : this.link(label, target));
      end = match.index + whole.length;
    }
    return [...parts, text.slice(end)].map((part) => (typeof part === "string" ? part.replaceAll("\\|", "|") : part));
  }

  link(label, target) {
    const href = this.hrefOf(target);
    return href === null ? el("span", { title: target }, this.inline(label)) : el("a", { href, rel: href.startsWith("#") ? null : "noreferrer" }, this.inline(label));
  }
}

// A list item of one paragraph is that text.
function loosened(blocks) {
  const [first, ...more] = blocks;
  return first?.localName === "p" ? [...first.childNodes, ...more] : blocks;
}

function isIndented(line, least) {
  return line.length - line.trimStart().length >= least;
}

// A bar within code, or behind a backslash, ends no cell.
function cells(row) {
  const parts = row.trim().replace(/^\|/, "").replace(/\|$/, "").match(/(?:\\\||`[^`]*`|[^|])+|(?<=\|)(?=\|)/g) ?? [];
  return parts.map((part) => part.trim());
}

function plain(text) {
  return text.replace(INLINE, (whole, tick, code, strong, bang, label) => code ?? strong ?? label ?? "");
}

// As GitHub names headings, which the links between documents follow.
function slug(text) {
  return plain(text).toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}
