// A part of a page that loads for itself, so that what is refused here leaves the rest standing.

import { el, fill } from "./elements.js";
import { inTurn, repeatedly, show } from "./refresh.js";
import { loading, problem } from "./states.js";

// `load` answers what to show; that stays while a later load fails, below what went wrong. `now`
// loads before its time has come; `draw` shows what is known already in another way.
export function section(title, everyMs, signal, load) {
  const trouble = el("div");
  const content = el("div", {}, loading());
  let isLoaded = false;
  const now = inTurn(async () => {
    try {
      const shown = await load();
      if (signal.aborted) return;
      show(content, shown);
      show(trouble);
      isLoaded = true;
    } catch (error) {
      if (signal.aborted) return;
      show(trouble, problem(error));
      if (!isLoaded) fill(content);
    }
  });
  const whole = el("section", {}, title && el("h2", {}, title), trouble, content);
  return { whole, now, run: () => repeatedly(everyMs, signal, now), draw: (shown) => show(content, shown) };
}
