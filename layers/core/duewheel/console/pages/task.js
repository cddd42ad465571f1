import { el, fill } from "../parts/elements.js";

export async function taskPage({ place }) {
  fill(place, el("h1", {}, "task"));
}
