// What the pages of one business have in common: its name, and the ways between them.

import { el } from "../../parts/elements.js";
import { link } from "../../parts/router.js";

const PAGES = [["Overview", []], ["Dead tasks", ["dead"]], ["Settings", ["edit"]]];

export function businessHead(name, current) {
  const here = (title) => (title === current ? "page" : null);
  return [
    el("h1", {}, name),
    el(
      "nav",
      { class: "tabs", "aria-label": "Business" },
      PAGES.map(([title, more]) => el("a", { href: link(["businesses", name, ...more]), "aria-current": here(title) }, title)),
      el("a", { href: link(["tasks"], { biz_type: name }) }, "Tasks"),
      el("a", { href: link(["operations"], { biz_type: name }) }, "Operations"),
      el("a", { href: link(["timers"], { biz_type: name }) }, "Timers"),
    ),
  ];
}
