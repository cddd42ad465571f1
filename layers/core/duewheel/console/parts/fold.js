// A form that is folded where it would take the screen from what it finds.

import { el } from "./elements.js";

const NARROW = "(max-width: 42rem)";

export function folded(name, content) {
  return el("details", { class: "fold", open: !window.matchMedia(NARROW).matches }, el("summary", {}, name), content);
}
