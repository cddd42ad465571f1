// Businesses side by side: what became of their tasks, and what holds some of them back.

import { el } from "../../parts/elements.js";
import { instant, span } from "../../parts/instants.js";
import { refusalText } from "../../parts/outcomes.js";
import { link } from "../../parts/router.js";
import { badge, table } from "../../parts/table.js";
import { latenessUpTo, minutesWithin, summed } from "./wheel_statistics.js";

const DAY_HOURS = 24;

export function businessesTable({ rows, to }, asked) {
  const counted = rows.map((row) => ({
    ...row,
    sums: row.minutes && summed(minutesWithin([row], asked.hours, to)),
    day: row.minutes && summed(row.minutes),
  }));
  const columns = [
    ["Business", (row) => named(row, asked)],
    ["Held back", heldBack],
    ["Delivered", (row) => number(row.sums?.delivered)],
    ["Pending", (row) => number(row.sums?.pending)],
    ["Failed attempts", (row) => number(row.sums?.failed_attempts)],
    ["p99 late", (row) => p99(row.sums)],
    [`Dead in ${DAY_HOURS} h`, dead],
  ];
  return [el("h2", {}, "By business"), table("By business", columns, counted, { key: ({ name }) => name })];
}

function named({ name, problem }, asked) {
  const only = link(["wheel"], { biz_type: name, hours: asked.hours === 1 ? null : asked.hours });
  return el(
    "div",
    {},
    el("a", { href: link(["businesses", name]) }, name),
    !asked.biz_type && [" ", el("a", { class: "only", href: only, "aria-label": `only this: ${name}` }, "only this")],
    problem && el("p", { class: "field-problem" }, refusalText(problem)),
  );
}

function heldBack({ settings, problem }) {
  if (settings === null) return el("span", { class: "quiet" }, problem ? "–" : "no settings");
  const said = [
    settings.paused && badge("paused"),
    settings.lane === "slow" && badge("slow lane", "warn"),
    settings.breakers.map(({ host, until }) => el("span", { class: "held" }, badge("blocked", "warn"), " ", el("code", {}, host), " until ", instant(until))),
    settings.calls_per_second !== null && el("span", { class: "held" }, `${settings.calls_per_second} calls a second`),
    settings.calls_in_flight !== null && el("span", { class: "held" }, `${settings.calls_in_flight} calls in flight`),
    settings.creates_per_second !== null && el("span", { class: "held" }, `${settings.creates_per_second} creates a second`),
  ].flat().filter(Boolean);
  return said.length === 0 ? el("span", { class: "quiet" }, settings.version === 0 ? "no settings" : "–") : el("div", { class: "holds" }, said);
}

function p99(sums) {
  const bound = sums ? latenessUpTo(0.99, sums.lateness) : null;
  return bound === null ? quiet() : el("span", { class: "whole" }, `up to ${span(bound)}`);
}

function dead({ name, day }) {
  if (!day) return quiet();
  return day.dead === 0 ? "0" : el("a", { class: "dead", href: link(["businesses", name]), "aria-label": `${day.dead} dead tasks of ${name}` }, day.dead.toLocaleString("en"));
}

function number(count) {
  return count === undefined ? quiet() : count.toLocaleString("en");
}

function quiet() {
  return el("span", { class: "quiet" }, "–");
}
