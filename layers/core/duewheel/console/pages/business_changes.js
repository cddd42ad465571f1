// Who changed a business's settings, when, and from what to what.

import { el } from "../parts/elements.js";
import { instant } from "../parts/instants.js";
import { call, Problem } from "../parts/service.js";
import { empty } from "../parts/states.js";
import { table } from "../parts/table.js";

export async function changes(name, signal) {
  const kept = await read(name, signal);
  if (kept.length === 0) return empty("No change of its settings is kept.");
  return table("Changes", COLUMNS, kept, { key: ({ version, at }) => `${version} ${at}` });
}

async function read(name, signal) {
  try {
    return (await call("GET", ["businesses", name, "changes"], { signal })).members.changes;
  } catch (error) {
    if (error instanceof Problem && error.type === "unknown-business") return [];
    throw error;
  }
}

const COLUMNS = [
  ["When", ({ at }) => instant(at)],
  ["Who", ({ by }) => el("code", {}, by)],
  ["What", ({ did, version }) => `${did}, version ${version}`],
  ["Settings", ({ fields }) => (fields.length === 0 ? el("span", { class: "quiet" }, "–") : el("ul", { class: "lines" }, fields.map(difference)))],
];

// Of callbacks and secrets the service tells the name alone.
function difference({ field, ...values }) {
  if (!("to" in values)) return el("li", {}, field);
  return el("li", {}, `${field}: `, el("code", {}, said(values.from)), " → ", el("code", {}, said(values.to)));
}

function said(value) {
  return value === null ? "default" : JSON.stringify(value);
}
