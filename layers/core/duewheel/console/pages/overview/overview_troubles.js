// What is wrong now, in one list, the worst first. It says that nothing is only if all was read.

import { el } from "../../parts/elements.js";
import { span, written } from "../../parts/instants.js";
import { link } from "../../parts/router.js";
import { summed, latenessUpTo } from "../wheel/wheel_statistics.js";

const BEHIND_SECONDS = 10;
const SWEEP_BEHIND_SECONDS = 720; // as the alarm on the sweep has it: ten minutes more than it waits
const OLD_SECONDS = 1800; // as the alarm on open places has it
const MEDIAN_LATE_MS = 1000; // more than half of a minute's tasks: no retries of a few
const HOUR_MS = 3_600_000;
const NAMED = 6; // the rest is counted

export function troublesPart(wheel, found) {
  const all = [...troublesOfWheel(wheel.answer), ...troublesOfBusinesses(found.answer)].sort((a, b) => RANK[a.level] - RANK[b.level]);
  return el(
    "section",
    { "aria-labelledby": "wrong" },
    el("h2", { id: "wrong" }, "What is wrong"),
    all.length === 0 ? verdict(wheel, found) : el("ul", { class: "troubles" }, all.map(trouble)),
    all.length > 0 && unknownOf(wheel, found),
  );
}

const RANK = { bad: 0, warn: 1 };
const SAID = { bad: "Wrong", warn: "To know" };
const SIGNS = { bad: "✕", warn: "!" };

function trouble({ level, what, more, key }) {
  return el(
    "li",
    { class: level, "data-key": key },
    el("span", { class: "sign", title: SAID[level], role: "img", "aria-label": SAID[level] }, SIGNS[level]),
    el("div", {}, el("strong", {}, what), more && [" ", more]),
  );
}

function verdict(wheel, found) {
  const left = unread(wheel, found);
  if (left.some(({ state: { isRefused } }) => !isRefused)) return unknownOf(wheel, found) ?? el("p", { class: "quiet", "aria-busy": "true" }, "Looking …");
  if (found.answer === null) return unknownOf(wheel, found);
  const { looked_at: count, goes_on: more, deaths, to } = found.answer;
  const known = more ? `the first ${count} known businesses (there are more)` : count === 1 ? "1 known business" : `${count} known businesses`;
  const looked = `${known}, deaths in ${deaths.businesses} of them up to now, tasks that fell due before ${written(to).slice(11, 16)}`;
  const well = left.length === 0 ? "Nothing is wrong." : "Nothing is wrong with the businesses.";
  return [
    el("p", { class: "well" }, el("span", { class: "sign", "aria-hidden": "true" }, "✓"), el("strong", {}, well), el("span", { class: "quiet" }, ` Looked at: ${left.length === 0 ? "the wheel, " : ""}${looked}.`)),
    unknownOf(wheel, found),
  ];
}

// Where a part was not read, nothing is said of it.
function unknownOf(wheel, found) {
  const left = unread(wheel, found).filter(({ state: { problem } }) => problem !== null);
  const isRefused = left.every(({ state }) => state.isRefused);
  return left.length === 0 ? null : el("p", { class: isRefused ? "hint" : "unknown" }, `Not known${isRefused ? " to you" : ""}: ${left.map(({ name }) => name).join(", ")}.`);
}

function unread(wheel, found) {
  return [
    { name: "whether calls are on time, and what the sweep has left open", state: wheel },
    { name: "what holds businesses back, and what died", state: found },
  ].filter(({ state: { answer } }) => answer === null);
}

function troublesOfWheel(wheel) {
  if (wheel === null) return [];
  const { time_pointer: time, sweep_pointer: sweep, open_places: places } = wheel;
  const oldest = places.oldest_age_seconds ?? 0;
  const many = places.count === 1 ? "1 place" : `${places.count.toLocaleString("en")} places`;
  return [
    time.lag_seconds >= BEHIND_SECONDS && {
      key: "late", level: "bad", what: `Calls are ${span(time.lag_seconds * 1000)} late.`,
      more: ["The time pointer is behind", wheel.leader === null ? ", and no scheduler leads. " : ". ", el("a", { href: link(["wheel"]) }, "The wheel")],
    },
    oldest > OLD_SECONDS && {
      key: "open-places", level: "bad", what: "The sweep cannot finish old places.",
      more: [`${many} open, the oldest for ${span(oldest * 1000)}. `, el("a", { href: link(["wheel"]) }, "Which and why")],
    },
    sweep.lag_seconds > SWEEP_BEHIND_SECONDS && {
      key: "sweep", level: "warn", what: `The sweep is ${span(sweep.lag_seconds * 1000)} behind.`,
      more: "Lost tasks are found as much later, and the figures of minutes are as old.",
    },
  ].filter(Boolean);
}

function troublesOfBusinesses(found) {
  if (found === null) return [];
  const { businesses, deaths, now } = found;
  const blocked = businesses.flatMap(({ biz_type: name, breakers }) => breakers.map((breaker) => ({ name, ...breaker })));
  const where = (test) => businesses.filter(test);
  return [
    deathsLately(deaths, now),
    listed(blocked, { key: "blocked", level: "bad", one: "1 host is blocked.", many: (count) => `${count} hosts are blocked.` }, (one) => blockedHost(one, now)),
    slowMinute(found),
    listed(where(({ paused }) => paused), { key: "paused", level: "warn", one: "1 business is paused.", many: (count) => `${count} businesses are paused.` }, named),
    listed(where(({ paused_flow_keys: keys }) => keys > 0), { key: "flow-keys", level: "warn", one: "1 business has paused flow keys.", many: (count) => `${count} businesses have paused flow keys.` }, (one) => [named(one), ` (${one.paused_flow_keys})`]),
    listed(where(({ lane }) => lane === "slow"), { key: "slow", level: "warn", one: "1 business is slow.", many: (count) => `${count} businesses are slow.` }, named, "Their calls take long, and run in the slow lane."),
    listed(where(isWaiting), { key: "waiting", level: "warn", one: "1 business waits for its limits.", many: (count) => `${count} businesses wait for their limits.` }, waiting),
  ].filter(Boolean);
}

function listed(rows, { key, level, one, many }, said, why = null) {
  if (rows.length === 0) return null;
  const more = rows.length - NAMED;
  const shown = rows.slice(0, NAMED).map((row, index) => [index > 0 && " · ", el("span", { class: "whole-part" }, said(row))]);
  return { key, level, what: rows.length === 1 ? one : many(rows.length.toLocaleString("en")), more: [why && `${why} `, shown, more > 0 && ` · and ${more.toLocaleString("en")} more`] };
}

function named({ biz_type: name }) {
  return el("a", { href: link(["businesses", name]) }, name);
}

function blockedHost({ name, host, since }, now) {
  const ms = Date.parse(now) - Date.parse(since);
  return [el("code", {}, host), " of ", named({ biz_type: name }), " for ", el("time", { datetime: since, title: since }, span(Math.max(0, ms)))];
}

function isWaiting({ usage: { calls, calls_in_flight: permits } }) {
  return (calls?.waiting ?? 0) + (permits?.waiting ?? 0) > 0;
}

function waiting(one) {
  const { calls, calls_in_flight: permits } = one.usage;
  const tasks = Math.max(calls?.waiting ?? 0, permits?.waiting ?? 0);
  return [named(one), ` (${tasks === 1 ? "1 task" : `${tasks.toLocaleString("en")} tasks`})`];
}

// Those of which a task died within the hour; their numbers are of the day.
function deathsLately({ groups }, now) {
  const lately = groups.filter(({ last_died_at: at }) => Date.parse(at) > Date.parse(now) - HOUR_MS);
  return listed(lately, { key: "deaths", level: "bad", one: "Tasks died of 1 error in the last hour.", many: (count) => `Tasks died of ${count} errors in the last hour.` }, errorOf);
}

function errorOf({ last_error: error, reason }) {
  return el("code", {}, error ?? reason ?? "unknown");
}

function slowMinute({ minutes, to }) {
  const last = summed(minutes.filter(({ at }) => Date.parse(at) === Date.parse(to) - 60_000));
  const median = last.delivered === 0 ? null : latenessUpTo(0.5, last.lateness);
  const isLate = median !== null && median > MEDIAN_LATE_MS;
  return isLate && { key: "lateness", level: "warn", what: "Most calls of the last counted minute were late.", more: `Half of them by up to ${span(median)} or more.` };
}
