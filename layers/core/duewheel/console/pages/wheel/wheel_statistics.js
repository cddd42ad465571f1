// What has become of tasks: businesses within reach, each with its statistics of the last day, and
// what these come to.

import { fewAtOnce } from "../../parts/few.js";
import { nowMs } from "../../parts/clock.js";
import { call, Problem } from "../../parts/service.js";

export const BUSINESSES_SHOWN = 10; // each costs the service two requests at every refresh
const AT_ONCE = 3;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const COUNTS = ["created", "pending", "delivered", "dead", "expired", "cancelled", "failed_attempts"];

// → {to, rows: [{name, settings, minutes, problem}], next}: one business by its name, or a page of all, up to the end
// of the present minute. The refusal of a business's own requests is shown in its row.
export async function lastDay({ biz_type: name, cursor }, signal) {
  const { names, next } = name ? { names: [name], next: null } : await listed(cursor, signal);
  const rows = names.map((name) => ({ name, settings: null, minutes: null, problem: null }));
  await fewAtOnce(AT_ONCE, rows, () => false, (row) => answered(row, async () => { row.settings = await settingsOf(row.name, signal); }));
  const to = (Math.floor(nowMs() / MINUTE_MS) + 1) * MINUTE_MS;
  const query = { from: new Date(to - 24 * HOUR_MS).toISOString(), to: new Date(to).toISOString() };
  await fewAtOnce(AT_ONCE, rows, () => false, (row) => answered(row, async () => {
    row.minutes = (await call("GET", ["businesses", row.name, "stats"], { query, signal })).members.minutes;
  }));
  return { to, rows, next };
}

async function listed(cursor, signal) {
  const { members } = await call("GET", ["businesses"], { query: { limit: BUSINESSES_SHOWN, cursor }, signal });
  return { names: members.businesses.map(({ biz_type: name }) => name), next: members.cursor };
}

async function settingsOf(name, signal) {
  try {
    return (await call("GET", ["businesses", name], { signal })).members;
  } catch (error) {
    if (error instanceof Problem && error.type === "unknown-business") return null;
    throw error;
  }
}

async function answered(row, work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    row.problem = error;
  }
}

export function minutesWithin(rows, hours, to) {
  const from = to - hours * HOUR_MS;
  return rows.flatMap(({ minutes }) => minutes ?? []).filter(({ at }) => Date.parse(at) >= from);
}

export function summed(minutes) {
  const sums = Object.fromEntries(COUNTS.map((name) => [name, minutes.reduce((sum, minute) => sum + minute[name], 0)]));
  const counts = {};
  for (const { lateness } of minutes) {
    for (const [name, count] of Object.entries(lateness.counts)) counts[name] = (counts[name] ?? 0) + count;
  }
  return { ...sums, lateness: { counts, max_ms: Math.max(0, ...minutes.map(({ lateness }) => lateness.max_ms)) } };
}

// How late the given share of the delivered was at most, as far as classes tell; null of none delivered.
export function latenessUpTo(share, { counts, max_ms: most }) {
  const classes = Object.entries(counts).map(([name, count]) => [boundOf(name), count]).sort(([a], [b]) => a - b);
  const all = classes.reduce((sum, [, count]) => sum + count, 0);
  let passed = 0;
  for (const [bound, count] of classes) {
    passed += count;
    if (passed >= share * all) return Math.min(bound, most);
  }
  return null;
}

// `up_to_250_ms`; what has no such name is later than all of them.
function boundOf(name) {
  return Number(/^up_to_(\d+)_ms$/.exec(name)?.[1] ?? Infinity);
}
