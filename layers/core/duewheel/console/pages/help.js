import { el, fill } from "../parts/elements.js";

export async function helpPage({ place }) {
  fill(place, el("h1", {}, "help"));
}
