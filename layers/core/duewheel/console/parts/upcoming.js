// What is ahead: instants on the clocks of a timer's zone and of the viewer's, and where clocks change.

import { el } from "./elements.js";
import { viewersZone, written } from "./instants.js";
import { empty } from "./states.js";
import { table } from "./table.js";
import { isKnown, offset } from "./zones.js";

export function upcomingTable(instants, zone) {
  if (instants.length === 0) return empty("Nothing is ahead.");
  const own = viewersZone();
  const rows = instants.map((at, index) => ({ at, change: isKnown(zone) ? changeSince(instants[index - 1], at, zone) : null }));
  const columns = [
    isKnown(zone) && [`In ${zone}`, ({ at, change }) => [onClock(at, zone), " ", el("span", { class: "quiet" }, offset(at, zone)), change && [" ", changed(change)]]],
    zone !== own && [`In ${own} (yours)`, ({ at }) => onClock(at, own)],
  ];
  return table("What is ahead", columns.filter(Boolean), rows, { key: ({ at }) => at, row: ({ change }) => ({ class: change && "clock-change" }) });
}

function onClock(at, zone) {
  const day = new Intl.DateTimeFormat("en-GB", { weekday: "short", timeZone: zone }).format(new Date(at));
  return el("time", { datetime: at, title: at }, `${day} ${written(at, zone)}`);
}

function changeSince(before, at, zone) {
  if (before === undefined) return null;
  const [was, is] = [offset(before, zone), offset(at, zone)];
  return was === is ? null : { was, is };
}

function changed({ was, is }) {
  return el("span", { class: "badge warn" }, `clocks changed: ${was} to ${is}`);
}
