import { el, fill } from "../parts/elements.js";

export async function tasksPage({ place }) {
  fill(place, el("h1", {}, "tasks"));
}
