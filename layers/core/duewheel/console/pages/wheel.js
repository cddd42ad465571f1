// The wheel: where the pointers stand, how far behind they are, and what is to come.

import { el } from "../parts/elements.js";
import { instant, span } from "../parts/instants.js";
import { repeatedly, show } from "../parts/refresh.js";
import { call } from "../parts/service.js";
import { loading, problem } from "../parts/states.js";
import { facts } from "../parts/table.js";

const EVERY_MS = 2000;

export async function wheelPage({ place, signal }) {
  show(place, el("h1", {}, "Wheel"), loading());
  await repeatedly(EVERY_MS, signal, async () => {
    try {
      const { members } = await call("GET", ["wheel"], { signal });
      show(place, el("h1", {}, "Wheel"), pointers(members));
    } catch (error) {
      if (!signal.aborted) show(place, el("h1", {}, "Wheel"), problem(error));
    }
  });
}

function pointers(wheel) {
  return facts([
    ["Time pointer", [instant(wheel.time_pointer.at), ` · lag ${span(wheel.time_pointer.lag_seconds * 1000)}`]],
    ["Sweep pointer", [instant(wheel.sweep_pointer.at), ` · lag ${span(wheel.sweep_pointer.lag_seconds * 1000)}`]],
  ]);
}
