// A field for a business, which suggests those that are known. Any other name is as good.

import { el, fill } from "./elements.js";
import { text } from "./form.js";
import { refusalText } from "./outcomes.js";
import { call } from "./service.js";

const SUGGESTED = 100;

export function businessField(value, signal) {
  const list = el("datalist", { id: "businesses" });
  const place = text("biz_type", "Business", value, { list: "businesses", hint: "Suggested are those with settings or tasks" });
  place.append(list);
  suggest(list, place.querySelector(".hint"), signal);
  return place;
}

async function suggest(list, hint, signal) {
  try {
    const { members } = await call("GET", ["businesses"], { query: { limit: SUGGESTED }, signal });
    fill(list, members.businesses.map(({ biz_type }) => el("option", { value: biz_type })));
  } catch (error) {
    if (!signal.aborted) hint.textContent = `None can be suggested. ${refusalText(error)}`;
  }
}
