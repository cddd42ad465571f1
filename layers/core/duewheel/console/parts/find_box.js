// The search box of every page. It suggests pages and businesses while one types, and Enter leads to the page of what is found.

import { el, fill } from "./elements.js";
import { icon } from "./icons.js";
import { link, whereabouts } from "./router.js";
import { call } from "./service.js";

const LISTED = 100;
const LISTED_AGAIN_MS = 60_000;
const SUGGESTED = 6;
const TASK_ID = /^[A-Za-z0-9_-]{24,}$/;
const TIMER_ID = /^[1-9][0-9]{7,15}$/;
const TYPED_INTO = "input, textarea, select, [contenteditable]";

let [names, listedAt] = [[], -Infinity];

// Fills `place`; `/` leads to it from anywhere.
export function findBox(place) {
  const options = el("ul", { id: "find-options", role: "listbox", "aria-label": "Suggestions", hidden: true });
  const input = el("input", {
    id: "find-anything", type: "search", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder: "Find a task, timer, business", "aria-label": "Find a task, timer or business",
    "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": options.id, "aria-keyshortcuts": "/",
  });
  const box = new Box(input, options);
  const form = el(
    "form",
    { class: "find", role: "search", novalidate: true, on: { submit: (event) => { event.preventDefault(); box.follow(); } } },
    icon("search"), input, el("kbd", { "aria-hidden": "true" }, "/"), options,
  );
  fill(place, form);
}

// The keys of every page.
export function onSlash(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(TYPED_INTO) || document.querySelector("dialog[open]")) return;
  const input = document.getElementById("find-anything");
  if (input === null) return;
  event.preventDefault();
  input.focus();
  input.select();
}

class Box {
  constructor(input, options) {
    this.input = input;
    this.options = options;
    this.at = -1;
    input.addEventListener("focus", () => this.list());
    input.addEventListener("input", () => this.suggest());
    input.addEventListener("keydown", (event) => this.pressed(event));
    input.addEventListener("blur", () => this.close());
    // The focus stays in the field, so that it does not close before the click.
    options.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  // One request in a minute at most, and none before the box is used.
  async list() {
    if (performance.now() - listedAt < LISTED_AGAIN_MS) return;
    listedAt = performance.now();
    try {
      names = (await call("GET", ["businesses"], { query: { limit: LISTED } })).members.businesses.map(({ biz_type: name }) => name);
    } catch {
      names = []; // what is typed is found without suggestions
    }
    if (document.activeElement === this.input) this.suggest();
  }

  suggest() {
    this.at = -1;
    const text = this.input.value.trim();
    const found = text === "" ? [] : suggestions(text);
    fill(this.options, found.map(({ href, said, kind }, index) => el(
      "li",
      { id: `find-option-${index}`, role: "option", "aria-selected": "false", "data-href": href, on: { click: () => this.go(href) } },
      icon(kind), el("span", {}, said),
    )));
    this.open(found.length > 0);
  }

  pressed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const many = this.options.childElementCount;
    if (step !== undefined && many > 0) {
      event.preventDefault();
      this.choose((this.at + step + many + (this.at === -1 && step === -1 ? 1 : 0)) % many);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (this.options.hidden) this.input.blur();
      this.open(false);
    }
  }

  choose(index) {
    this.at = index;
    this.open(true);
    for (const [at, option] of [...this.options.children].entries()) option.setAttribute("aria-selected", String(at === index));
    this.input.setAttribute("aria-activedescendant", `find-option-${index}`);
  }

  follow() {
    const text = this.input.value.trim();
    if (this.at >= 0) this.go(this.options.children[this.at].dataset.href);
    else if (text !== "") this.go(findHref(text));
  }

  go(href) {
    this.input.value = "";
    this.close();
    document.getElementById("main").focus();
    if (location.hash === href) window.dispatchEvent(new HashChangeEvent("hashchange")); // looks again
    else location.hash = href;
  }

  close() {
    fill(this.options);
    this.open(false);
  }

  open(isOpen) {
    this.options.hidden = !isOpen;
    this.input.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) {
      this.at = -1;
      this.input.removeAttribute("aria-activedescendant");
    }
  }
}

// Of what is known here: nothing is asked of the service for them.
function suggestions(text) {
  const typed = text.toLowerCase();
  const pages = [...document.querySelectorAll("header nav a")].filter((anchor) => anchor.textContent.toLowerCase().startsWith(typed));
  const known = names.filter((name) => name.includes(typed)).sort((a, b) => b.startsWith(typed) - a.startsWith(typed));
  return [
    TASK_ID.test(text) && { href: link(["tasks", text]), said: `Task ${text}`, kind: "task" },
    TIMER_ID.test(text) && { href: link(["timers", text]), said: `Timer ${text}`, kind: "timer" },
    known.slice(0, SUGGESTED).map((name) => ({ href: link(["businesses", name]), said: name, kind: "business" })),
    pages.map((anchor) => ({ href: anchor.hash, said: anchor.textContent, kind: "document" })),
    { href: findHref(text), said: `Find “${text}” everywhere`, kind: "search" },
  ].flat().filter(Boolean);
}

// A key is looked for first in the business that is on the page.
function findHref(text) {
  const { parts, query } = whereabouts(location.hash);
  const business = parts[0] === "businesses" ? parts[1] : query.biz_type;
  return link(["find"], { q: text, biz_type: business });
}
