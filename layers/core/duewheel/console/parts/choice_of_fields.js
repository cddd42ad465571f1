// A choice that decides which fields stand below it. What is typed into those of another stays for when
// it is chosen again, but is not of the form meanwhile.

import { el, fill } from "./elements.js";
import { choice } from "./form.js";

// groups: {http: {said: "HTTP", fields: [...]}, …}
export function choiceOfFields(name, label, groups, value) {
  const options = Object.entries(groups).map(([kind, { said }]) => [kind, said]);
  const place = el("div", { class: "filters" });
  const chosen = (event) => fill(place, groups[event.target.value].fields);
  fill(place, groups[value].fields);
  return el("div", {}, choice(name, label, options, value, { on: { change: chosen } }), place);
}
