import { el, fill } from "../parts/elements.js";

export async function timerPage({ place }) {
  fill(place, el("h1", {}, "timer"));
}
