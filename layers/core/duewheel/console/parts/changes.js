// The changes of a definition: who, when, what.

import { el } from "./elements.js";
import { instant } from "./instants.js";
import { empty } from "./states.js";
import { table } from "./table.js";

export function changesTable(changes) {
  if (changes.length === 0) return empty("No change is kept.");
  return table("Changes", COLUMNS, changes, { key: ({ version, at }) => `${version} ${at}` });
}

const COLUMNS = [
  ["When", ({ at }) => instant(at)],
  ["Who", ({ by }) => el("code", { class: "who" }, by)],
  ["Did", ({ did, version }) => [did, " ", el("span", { class: "quiet" }, `version ${version}`)]],
  ["What", what],
];

function what({ did, fields }) {
  if (fields.length === 0) return el("span", { class: "quiet" }, "–");
  return fields.map((one) => el("div", {}, difference(one, did)));
}

// Of callbacks, payloads and secrets the service tells the name alone.
function difference({ field, ...values }, did) {
  if (!("to" in values)) return field;
  const before = did === "created" ? [] : [el("code", {}, shown(values.from)), " → "];
  return [field, ": ", before, el("code", {}, shown(values.to))];
}

function shown(value) {
  return value === null ? "default" : JSON.stringify(value);
}
