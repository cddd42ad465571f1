// Shows the outcome of the viewer's actions, in one place, and asks before actions that cannot be undone.

import { el } from "./elements.js";
import { Problem } from "./service.js";

const SHOWN_MS = 8000;

export function told(text, kind = "done") {
  const note = el("p", { class: `outcome ${kind}` }, text, el("button", { type: "button", "aria-label": "Dismiss", on: { click: () => note.remove() } }, "×"));
  document.getElementById("outcomes").append(note);
  if (kind === "done") setTimeout(() => note.remove(), SHOWN_MS); // a refusal stays until it is read
}

// Does `work` after the viewer has agreed, and says what came of it. True when it was done.
export async function confirmed(question, work) {
  if (!(await agreed(question))) return false;
  return attempted(work);
}

export async function attempted(work) {
  try {
    told(await work());
    return true;
  } catch (error) {
    told(refusalText(error), "refused");
    return false;
  }
}

export function refusalText(error) {
  if (!(error instanceof Problem)) return String(error);
  return error.message && error.message !== error.title ? `${error.title}: ${error.message}` : error.title;
}

// Whether the viewer agrees, in a dialog that may have fields. It has an entry of the history, so that Back closes it and
// the page stays.
export function agreed({ title, text, verb, danger = false, fields = [] }) {
  return new Promise((resolve) => {
    const left = new AbortController();
    const close = async () => {
      dialog.remove();
      if (!left.signal.aborted) await back();
      resolve(dialog.returnValue === "yes");
    };
    const dialog = el(
      "dialog",
      { "aria-labelledby": "dialog-title", on: { close } },
      el(
        "form",
        { method: "dialog" },
        el("h2", { id: "dialog-title" }, title),
        text && el("p", {}, text),
        fields,
        el(
          "div",
          { class: "buttons" },
          el("button", { type: "button", on: { click: () => dialog.close("no") } }, "Leave it"), // so that Enter in a field means the other
          el("button", { value: "yes", class: danger ? "danger" : "primary" }, verb),
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
    history.pushState(null, "");
    window.addEventListener("popstate", () => { left.abort(); dialog.close("no"); }, { signal: left.signal });
  });
}

function back() {
  return new Promise((resolve) => {
    window.addEventListener("popstate", resolve, { once: true });
    history.back();
  });
}
