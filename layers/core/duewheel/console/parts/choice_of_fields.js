// A choice that decides which fields are below it. Values typed into the fields of another choice are kept.

import { el } from "./elements.js";

// `members`: name and field of each; `shown`: names by what is chosen, none where it names none.
export function choiceOfFields(choice, members, shown) {
  const control = choice.querySelector("select");
  const match = () => {
    for (const [member, field] of members) field.hidden = !shown[control.value]?.includes(member);
  };
  control.addEventListener("change", match);
  match();
  return el("div", { class: "members" }, choice, members.map(([, field]) => field));
}
