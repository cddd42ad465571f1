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
  ["Who", ({ by }) => el("code", {}, by)],
  ["Did", ({ did, version }) => [did, " ", el("span", { class: "quiet" }, `version ${version}`)]],
  ["What", ({ fields }) => (fields.length === 0 ? el("span", { class: "quiet" }, "–") : el("div", {}, fields.map(difference)))],
];

// Of callbacks, payloads and secrets the service tells the name alone.
function difference({ field, ...values }) {
  const said = "from" in values ? [": ", el("code", {}, shown(values.from)), " → ", el("code", {}, shown(values.to))] : null;
  return el("div", { class: "change" }, field, said);
}

function shown(value) {
  return value === null ? "default" : JSON.stringify(value);
}
