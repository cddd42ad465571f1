// What the page reads. However many businesses there are, it makes a few requests.

import { call } from "../../parts/service.js";

const PAGES_MAX = 4;
const ON_A_PAGE = 50; // businesses

export async function readWheel(signal) {
  return (await call("GET", ["wheel"], { signal })).members;
}

// The pages of the overview as one, up to a number of businesses; `goes_on` where there are more.
export async function readBusinesses(signal) {
  const pages = [];
  let cursor = null;
  do {
    const { members } = await call("GET", ["overview"], { query: { limit: ON_A_PAGE, cursor }, signal });
    pages.push(members);
    cursor = members.cursor;
  } while (cursor !== null && pages.length < PAGES_MAX);
  const last = pages.at(-1);
  return {
    now: last.now,
    from: last.from,
    to: last.to,
    minutes: pages.flatMap(({ minutes }) => minutes),
    businesses: pages.flatMap(({ businesses }) => businesses),
    deaths: joined(pages.map(({ deaths }) => deaths)),
    operations: pages[0].operations,
    looked_at: pages.reduce((sum, { looked_at: { businesses } }) => sum + businesses, 0),
    goes_on: cursor !== null,
  };
}

function joined(parts) {
  const groups = new Map();
  for (const group of parts.flatMap((part) => part.groups)) {
    const key = JSON.stringify([group.last_error, group.reason]);
    const before = groups.get(key);
    groups.set(key, before ? together(before, group) : group);
  }
  const sum = (name) => parts.reduce((total, part) => total + part[name], 0);
  return {
    since: parts[0].since,
    businesses: sum("businesses"),
    tasks: sum("tasks"),
    more: parts.some(({ more }) => more),
    groups: [...groups.values()].sort((a, b) => Date.parse(b.last_died_at) - Date.parse(a.last_died_at)),
  };
}

function together(a, b) {
  const [later] = [a, b].sort((one, other) => Date.parse(other.last_died_at) - Date.parse(one.last_died_at));
  const businesses = [...a.businesses, ...b.businesses].sort((one, other) => other.tasks - one.tasks);
  return { ...later, tasks: a.tasks + b.tasks, businesses };
}
