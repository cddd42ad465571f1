// A shape for each state and each kind of thing, of 16 by 16. They are drawn beside words, and say nothing alone.

import { svg } from "./elements.js";

const RING = "M8 1.75a6.25 6.25 0 1 0 0 12.5 6.25 6.25 0 0 0 0-12.5z";
const OCTAGON = "M5.4 1.75h5.2l3.65 3.65v5.2l-3.65 3.65H5.4L1.75 10.6V5.4z";
const CHECK = "m5 8.3 2.1 2.1L11 6.2";
const CROSS = "m5.7 5.7 4.6 4.6m0-4.6-4.6 4.6";
const BARS = "M6.3 5.5v5M9.7 5.5v5";
const CLOCK = "M8 4.5V8l2.4 1.6";
const TRIANGLE = "M8 2 1.6 13.5h12.8z";

// What is drawn as a line, what is filled, and what is cut out of that.
const SHAPES = {
  pending: { line: RING + CLOCK },
  running: { line: "M13.5 8a5.5 5.5 0 0 1-9.6 3.7M2.5 8a5.5 5.5 0 0 1 9.6-3.7M12.4 1.6v2.9H9.5M3.6 14.4v-2.9h2.9" },
  parked: { line: RING + BARS },
  delivered: { filled: RING, cut: CHECK },
  dead: { filled: OCTAGON, cut: CROSS },
  cancelled: { line: `${RING}M3.7 12.3l8.6-8.6` },
  expired: { line: "M4 1.75h8M4 14.25h8M5 1.75c0 3.5 6 5.5 6 8.5v4M11 1.75c0 3.5-6 5.5-6 8.5v4" },
  enabled: { line: RING, filled: "M6.3 5v6l4.9-3z" },
  disabled: { line: `${RING}M5 8h6` },
  ended: { line: RING, filled: "M5.75 5.75h4.5v4.5h-4.5z" },
  retry: { line: "M3 8a5 5 0 1 1 1.5 3.6M2.6 12.9v-2.7h2.7" },
  stop: { line: `${OCTAGON}M5 8h6` },
  warn: { line: `${TRIANGLE}M8 6.2v3.6M8 11.7v.2` },
  plus: { line: "M8 3v10M3 8h10" },
  hands: { line: "M8 2.5V8l3.6 2.4" },
  dots: { filled: "M3 7h2v2H3zM7 7h2v2H7zM11 7h2v2h-2z" },
  tick: { line: "m3 8.5 3.4 3.4L13 4.8" },
  cross: { line: "m3.7 3.7 8.6 8.6m0-8.6-8.6 8.6" },
  slash: { line: "m3 13 10-10" },
  page: { line: "M3.25 1.75h6.5l3 3v9.5h-9.5zM9.5 1.75v3.3h3.2M5.6 8h4.8M5.6 10.8h4.8" },
  notice: { line: "M8 1.75a4 4 0 0 0-4 4c0 4-1.75 4.75-1.75 5.75h11.5C13.75 10.5 12 9.75 12 5.75a4 4 0 0 0-4-4zM6.6 13.9c.7.6 2.1.6 2.8 0" },
  timer: { line: `${RING}M8 4.5V8H5` },
  business: { line: "M2.25 14.25V5.5L8 1.75l5.75 3.75v8.75zM6.25 14.25v-4h3.5v4" },
  document: { line: "M3.25 1.75h9.5v12.5h-9.5zM5.6 5h4.8M5.6 8h4.8M5.6 11h2.6" },
  search: { line: "M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2zM10.7 10.7 14.25 14.25" },
};
const ALIKE = { paused: "parked", good: "delivered", bad: "dead", task: "pending", "clock-change": "warn" };

// null for what has no shape.
export function icon(name) {
  const shape = SHAPES[ALIKE[name] ?? name];
  if (shape === undefined) return null;
  return svg(
    "svg",
    { class: "icon", viewBox: "0 0 16 16", width: "16", height: "16", "aria-hidden": "true", focusable: "false" },
    shape.line && svg("path", { d: shape.line }),
    shape.filled && svg("path", { class: "filled", d: shape.filled }),
    shape.cut && svg("path", { class: "cut", d: shape.cut }),
  );
}
