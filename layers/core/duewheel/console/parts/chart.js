// Bars over time. The whole chart is one stop of the keyboard, from which arrows go from point to point; the values of
// the point under it or under the mouse are written beside it.

import { el, svg } from "./elements.js";
import { written } from "./instants.js";

const WIDTH = 1000;
const HEIGHT = 100;
const PAGE = 10;

// points: [{at, until, …}] in milliseconds, in order, at least one. layers: [{name, of: (point) => …}], one upon the
// other; those that are `below` hang from the line. `told` is the index of the point that is described, `text` its
// description. `state` has the points under the pointer, {picked, hovered, redraw}.
export function chart({ label, from, to, points, layers, told, text, state }) {
  const x = (at) => ((at - from) / (to - from)) * WIDTH;
  const { most, shapes, line } = drawn(points, layers, x);
  const middle = x(middleOf(points[told]));
  return el(
    "div",
    {
      class: "chart", role: "slider", tabindex: "0", "aria-label": label,
      "aria-valuemin": "0", "aria-valuemax": String(points.length - 1), "aria-valuenow": String(told), "aria-valuetext": text,
      on: listeners(points, from, to, told, state),
    },
    el("span", { class: "most" }, `most: ${most}`),
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" },
      svg("line", { class: "told", x1: middle, x2: middle, y1: 0, y2: HEIGHT }),
      shapes,
      svg("line", { class: "zero", x1: 0, x2: WIDTH, y1: line, y2: line }),
    ),
  );
}

// The instants beneath a chart, at even distances.
export function axis(from, to, steps = 4) {
  const at = (step) => new Date(from + ((to - from) * step) / steps).toISOString();
  const said = (step) => el("time", { datetime: at(step), title: at(step) }, written(at(step)).slice(11, 16));
  return el("div", { class: "axis", "aria-hidden": "true" }, Array.from({ length: steps + 1 }, (_, step) => said(step)));
}

export function legend(layers) {
  return el("ul", { class: "legend" }, layers.map(({ name, said }) => el("li", { class: name }, said)));
}

function drawn(points, layers, x) {
  const sumOf = (point, isBelow) => layers.filter(({ below = false }) => below === isBelow).reduce((sum, { of }) => sum + of(point), 0);
  const above = Math.max(...points.map((point) => sumOf(point, false)));
  const below = Math.max(...points.map((point) => sumOf(point, true)));
  const unit = (HEIGHT - 2) / Math.max(1, above + below);
  const line = HEIGHT - 1 - below * unit;
  const heights = { false: points.map(() => line), true: points.map(() => line) };
  const shapes = layers.map(({ name, of, below: isBelow = false }) => {
    const bar = (point, index) => {
      const end = heights[isBelow][index] + (isBelow ? 1 : -1) * of(point) * unit;
      const text = of(point) ? rectangle(x(point.at), x(point.until), heights[isBelow][index], end) : "";
      heights[isBelow][index] = end;
      return text;
    };
    return svg("path", { class: name, d: points.map(bar).join("") });
  });
  return { most: above, shapes, line };
}

function rectangle(left, right, from, to) {
  return `M${left.toFixed(2)} ${from.toFixed(2)}H${right.toFixed(2)}V${to.toFixed(2)}H${left.toFixed(2)}Z`;
}

// The index of the point that the viewer points at; until there is one, `first`.
export function pointed({ picked, hovered }, points, first) {
  const at = hovered ?? picked;
  return at === null ? first : nearest(points, at);
}

function listeners(points, from, to, told, state) {
  const under = (event) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    return nearest(points, from + ((event.clientX - left) / width) * (to - from));
  };
  const point = (how, index) => {
    const at = index === null ? null : middleOf(points[index]);
    if (state[how] === at) return;
    state[how] = at;
    state.redraw();
  };
  return {
    keydown: (event) => {
      const index = byKey(event.key, told, points.length - 1);
      if (index === null) return;
      event.preventDefault();
      state.hovered = null; // the mouse lies where it lay
      point("picked", index);
    },
    pointermove: (event) => point("hovered", under(event)),
    pointerleave: () => point("hovered", null),
    click: (event) => point("picked", under(event)),
  };
}

function byKey(key, now, last) {
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -PAGE, PageUp: PAGE, Home: -Infinity, End: Infinity };
  return key in steps ? Math.min(last, Math.max(0, now + steps[key])) : null;
}

function nearest(points, instant) {
  const distance = (point) => Math.abs(middleOf(point) - instant);
  let best = 0;
  for (const [index, point] of points.entries()) if (distance(point) < distance(points[best])) best = index;
  return best;
}

function middleOf({ at, until }) {
  return (at + until) / 2;
}
