// A payload as it was given, to the letter, and laid out for reading if the viewer likes.

import { el } from "../../parts/elements.js";
import { laidOut } from "../../parts/raw_layout.js";

// A view of the raw text; `again` shows the page anew.
export function payloadView(again) {
  let isLaidOut = false;
  const choose = (event) => {
    isLaidOut = event.target.checked;
    again();
  };
  return (raw) => [
    raw === "null"
      ? el("p", { "data-key": "payload" }, el("code", {}, "null"), el("span", { class: "quiet" }, ", or none was given"))
      : el("pre", { class: "payload", tabindex: "0", role: "region", "aria-label": "Its text", "data-key": "payload" }, isLaidOut ? laidOut(raw) : raw),
    raw !== "null" && el("label", { class: "box", "data-key": "layout" }, el("input", { type: "checkbox", on: { change: choose } }), " Lay it out for reading"),
  ];
}
