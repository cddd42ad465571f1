import { el, fill } from "../parts/elements.js";

export async function businessPage({ place }) {
  fill(place, el("h1", {}, "business"));
}
