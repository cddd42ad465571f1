// What is ahead: instants on the clocks of a timer's zone and of the viewer's, and where clocks change.

import { el } from "./elements.js";
import { viewersZone, written } from "./instants.js";
import { empty } from "./states.js";
import { badge, table } from "./table.js";
import { isKnown, offset } from "./zones.js";

export function upcomingTable(instants, zone) {
  if (instants.length === 0) return empty("Nothing is ahead.");
  const own = viewersZone();
  const rows = instants.map((at, index) => ({ at, hasChanged: isKnown(zone) && index > 0 && offset(instants[index - 1], zone) !== offset(at, zone) }));
  const inZone = ({ at, hasChanged }) => [
    onClock(at, zone),
    " ",
    el("span", { class: "quiet" }, offset(at, zone)),
    hasChanged && [" ", badge("clocks changed", "warn")],
  ];
  const columns = [
    isKnown(zone) && [zone, inZone],
    zone !== own && [`${own} (yours)`, ({ at }) => onClock(at, own)],
  ];
  const shown = table("What is ahead", columns.filter(Boolean), rows, { key: ({ at }) => at, row: ({ hasChanged }) => ({ class: hasChanged && "clock-change" }) });
  return el("div", { class: "upcoming" }, shown);
}

function onClock(at, zone) {
  const day = new Intl.DateTimeFormat("en-GB", { weekday: "short", timeZone: zone }).format(new Date(at));
  return el("time", { datetime: at, title: at }, `${day} ${written(at, zone)}`);
}
