// Who changed a business's settings, when, and from what to what.

import { changesTable } from "../../parts/changes.js";
import { call, Problem } from "../../parts/service.js";

export async function changes(name, signal) {
  return changesTable(await read(name, signal));
}

// One that was never configured has none.
async function read(name, signal) {
  try {
    return (await call("GET", ["businesses", name, "changes"], { signal })).members.changes;
  } catch (error) {
    if (error instanceof Problem && error.type === "unknown-business") return [];
    throw error;
  }
}
