// A timer's schedule in words where words are exact, and as it was written where they are not.

import { el } from "./elements.js";

export function schedule(timer) {
  if (timer.every_seconds !== null) return el("span", {}, every(timer.every_seconds));
  return el(
    "span",
    {},
    el("code", {}, timer.cron),
    " ",
    el("span", { class: "quiet" }, timer.timezone, timer.dialect === "cronexpr" && ", read as xTimer does"),
  );
}

// 900 → "every 15 min"; a unit only where it goes in evenly.
export function every(seconds) {
  const [size, unit] = [[3600, "h"], [60, "min"], [1, "s"]].find(([size]) => seconds % size === 0);
  return `every ${seconds / size} ${unit}`;
}
