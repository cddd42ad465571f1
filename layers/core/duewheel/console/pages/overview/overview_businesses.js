// The businesses with something to show, those with trouble first.

import { el } from "../../parts/elements.js";
import { span } from "../../parts/instants.js";
import { link } from "../../parts/router.js";
import { empty } from "../../parts/states.js";
import { badge, table } from "../../parts/table.js";
import { latenessUpTo } from "../wheel/wheel_statistics.js";

const SHOWN = 12;

export function businessesPart({ businesses, looked_at: looked, goes_on: more }) {
  const rows = [...businesses].sort((a, b) => weight(b) - weight(a) || b.hour.created - a.hour.created);
  const all = el("a", { href: link(["businesses"]) }, "All businesses");
  const among = more ? `the first ${looked} businesses` : looked === 1 ? "1 business" : `${looked} businesses`;
  return el(
    "section",
    { "aria-labelledby": "busy" },
    el("h2", { id: "busy" }, "Businesses in the last hour"),
    rows.length === 0 ? empty("None had tasks in the last hour, and none is held back.") : el("div", { class: "overview-rows" }, table("Busy businesses", COLUMNS, rows.slice(0, SHOWN), { key: ({ biz_type: name }) => name })),
    el("p", { class: "hint" }, rows.length > SHOWN && `${rows.length - SHOWN} more have had tasks. `, `Looked at ${among}. `, all),
  );
}

function weight({ breakers, paused, paused_flow_keys: keys, lane, hour, died_since: died }) {
  return 8 * breakers.length + 4 * (hour.dead + died > 0) + 2 * (paused || keys > 0) + (lane === "slow" || hour.failed_attempts > 0);
}

const COLUMNS = [
  ["Business", ({ biz_type: name }) => el("a", { href: link(["businesses", name]) }, name)],
  ["State", states],
  ["Due", ({ hour }) => number(hour.created)],
  ["Delivered", ({ hour }) => number(hour.delivered)],
  ["Failed attempts", ({ hour }) => number(hour.failed_attempts, "of-warn")],
  ["Dead", ({ hour }) => number(hour.dead, "of-bad")],
  ["Pending", ({ hour }) => number(hour.pending)],
  ["p99 late", ({ hour }) => (hour.delivered === 0 ? quiet() : el("span", { class: "whole" }, `≤ ${span(latenessUpTo(0.99, hour.lateness))}`))],
  ["In flight", inFlight],
];

function states({ paused, paused_flow_keys: keys, lane, breakers, died_since: died }) {
  const said = [
    died > 0 && badge(`${died} just died`, "bad"),
    breakers.length > 0 && badge("blocked", "bad"),
    paused && badge("paused"),
    keys > 0 && badge(keys === 1 ? "1 flow key paused" : `${keys} flow keys paused`, "paused"),
    lane === "slow" && badge("slow", "warn"),
  ].filter(Boolean);
  return said.length === 0 ? quiet() : el("div", { class: "holds" }, said);
}

function inFlight({ calls_in_flight: limit, usage: { calls_in_flight: permits } }) {
  if (!permits) return quiet();
  return el("span", { class: "whole" }, `${permits.used} of ${limit}`, permits.waiting > 0 && el("span", { class: "of-warn" }, ` +${permits.waiting.toLocaleString("en")}`));
}

function number(count, level = null) {
  return count === 0 ? quiet("0") : el("span", { class: level }, count.toLocaleString("en"));
}

function quiet(text = "–") {
  return el("span", { class: "quiet" }, text);
}
