import { el, fill } from "../parts/elements.js";

export async function businessesPage({ place }) {
  fill(place, el("h1", {}, "businesses"));
}
