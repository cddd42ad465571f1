import { el, fill } from "../parts/elements.js";

export async function timersPage({ place }) {
  fill(place, el("h1", {}, "timers"));
}
