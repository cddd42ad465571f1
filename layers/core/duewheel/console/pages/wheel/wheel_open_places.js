// The places behind the sweep pointer that the sweep has not finished, oldest first.

import { el } from "../../parts/elements.js";
import { instant, span } from "../../parts/instants.js";
import { badge, table } from "../../parts/table.js";

const SHOWN_AT_ONCE = 10; // more are folded: the page goes on below
const OLD_MS = 1_800_000; // as the alarm on open places has it

const REASONS = {
  held: "A notifier works on the page, or its message was sent again in the last minute.",
  unbegun: "No notifier has begun the page, though its message was sent again.",
  "taken-apart": "The page kept failing. Each of its tasks has an entry of its own now.",
  changed: "A task changed while it was given a new entry.",
  failed: "A request to a table or a queue failed.",
  "not-reached": "The run ended before this shard and all later ones of the second.",
  "not-counted": "No task of the second is unfinished. It is yet to be entered in the statistics.",
};

export function openPlaces({ now, open_places: found }) {
  return el(
    "section",
    { "aria-labelledby": "open-places" },
    el("h2", { id: "open-places" }, "Open places"),
    found.count === 0 ? none() : some(found, Date.parse(now)),
  );
}

function none() {
  return quietly("p", "None: the sweep has finished every second up to its pointer.");
}

function some({ count, places }, now) {
  const ageMs = ({ since }) => Math.max(0, now - Date.parse(since));
  const said = count === 1 ? "1 place" : `${count.toLocaleString("en")} places`;
  const shown = places.length < count ? ` The oldest ${places.length} are shown.` : "";
  const columns = [
    ["Second", ({ at }) => instant(at)],
    ["Shard", ({ shard }) => shard],
    ["Page", ({ page }) => (page === null ? quietly("span", "–") : el("code", {}, page))],
    ["Open since", (place) => [instant(place.since), " · ", el("span", { class: "whole" }, span(ageMs(place))), ageMs(place) > OLD_MS && [" ", badge("old", "warn")]]],
    ["Why", ({ why }) => [el("code", {}, why), REASONS[why] && el("p", { class: "hint" }, REASONS[why])]],
  ];
  const more = places.length - SHOWN_AT_ONCE;
  return [
    quietly("p", `${said} behind the sweep pointer that the sweep has not finished. Each run looks at them first.${shown}`),
    listed("The oldest open places", columns, places.slice(0, SHOWN_AT_ONCE)),
    more > 0 && el("details", {}, el("summary", {}, `${more} more`), listed("More open places", columns, places.slice(SHOWN_AT_ONCE))),
    whatToDo(),
  ];
}

function listed(caption, columns, places) {
  return table(caption, columns, places, { key: ({ second, shard, page }) => `${second}.${shard}.${page}` });
}

function whatToDo() {
  return el("p", { class: "hint" }, "What to do about an old one: ", el("code", {}, "docs/operations.md"), ", Open places.");
}

function quietly(kind, text) {
  return el(kind, { class: "quiet" }, text);
}
