// Where a business is named: free text, since one needs no settings, with those that have some suggested.

import { el, fill } from "./elements.js";
import { text } from "./form.js";
import { call, Problem } from "./service.js";

const LIMIT = 100; // of suggestions; a name beyond them is typed

export function businessBox(value, signal, more = {}) {
  const list = el("datalist", { id: "businesses-known" });
  suggest(list, signal);
  return el("div", {}, text("biz_type", "Business", value, { list: list.id, ...more }), list);
}

async function suggest(list, signal) {
  try {
    const { members } = await call("GET", ["businesses"], { query: { limit: LIMIT }, signal });
    fill(list, members.businesses.map(({ biz_type: name }) => el("option", { value: name })));
  } catch (error) {
    // Whoever may not list businesses, or cannot now, types the name.
    if (!(error instanceof Problem || signal.aborted)) throw error;
  }
}
