// Work of many calls: shows how far it is and what came of each part, and can be stopped between two.

import { el, fill } from "./elements.js";

// `work` gets {say, note, isStopped} and answers what it came to in the end. Leaving the page stops
// it; a call that was sent is waited for, since it may have been carried out.
export async function stepwise(place, signal, work) {
  const said = el("p", { role: "status" });
  const notes = el("ul", { class: "notes" });
  let isStopped = false;
  const stop = el("button", { type: "button", on: { click: () => { isStopped = true; stop.disabled = true; } } }, "Stop");
  fill(place, el("section", { class: "card progress", "aria-label": "Progress" }, said, notes, stop));
  stop.focus();
  const say = (text) => { said.textContent = text; };
  const note = (...children) => notes.append(el("li", {}, children));
  try {
    const outcome = await work({ say, note, isStopped: () => isStopped || signal.aborted });
    say(outcome);
    return outcome;
  } catch (error) {
    if (said.textContent === "") fill(place); // nothing was done that there is to tell of
    throw error;
  } finally {
    const close = el("button", { type: "button", on: { click: () => fill(place) } }, "Close");
    const hadFocus = document.activeElement === stop || document.activeElement === document.body;
    stop.replaceWith(close);
    if (hadFocus && !signal.aborted) close.focus();
  }
}
