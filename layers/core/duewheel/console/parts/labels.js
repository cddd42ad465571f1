// Labels, written `name:value`: one a line in a field, and as links to the lists that they filter.

import { el } from "./elements.js";
import { area } from "./form.js";
import { link } from "./router.js";
import { Problem } from "./service.js";

export function labelField(name, label, labels, hint) {
  const lines = Array.isArray(labels) ? labels : texts(labels);
  return area(name, label, lines.join("\n"), { hint, rows: 2, placeholder: "team:billing" });
}

// What a filter asks for, from a field or an address.
export function labelTexts(typed) {
  return (typed ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
}

// The members that a field says; a refusal names the field.
export function labelsOf(typed, field = "labels") {
  const pairs = labelTexts(typed).map((line) => {
    const at = line.indexOf(":");
    if (at < 1) throw new Problem(422, { field, detail: `${line} is no name:value.` });
    return [line.slice(0, at), line.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

// Each leads to the list of what has it, beside what `query` says of that list.
export function labelLinks(labels, path, { cursor, label, key_prefix, ...query }) {
  return texts(labels).map((text) => [
    el("a", { class: "badge", href: link(path, { ...query, label: [...new Set([...labelTexts(label), text])].join("\n") }) }, text),
    " ",
  ]);
}

function texts(labels) {
  return Object.entries(labels ?? {}).map(([name, value]) => `${name}:${value}`);
}
