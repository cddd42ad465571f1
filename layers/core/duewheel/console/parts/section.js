// A part of a page that loads for itself, so that what is refused here leaves the rest standing.

import { el } from "./elements.js";
import { repeatedly, show } from "./refresh.js";
import { loading, problem } from "./states.js";

// `load` answers what to show. `now` shows it anew before its time has come.
export function section(title, everyMs, signal, load) {
  const place = el("div", {}, loading());
  const now = async () => {
    try {
      const shown = await load();
      if (!signal.aborted) show(place, shown);
    } catch (error) {
      if (!signal.aborted) show(place, problem(error));
    }
  };
  const whole = el("section", { "aria-label": title }, el("h2", {}, title), place);
  return { whole, now, run: () => repeatedly(everyMs, signal, now) };
}
