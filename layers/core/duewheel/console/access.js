// The access of the viewer: an open stack needs none, one with keys an API key; where requests are signed the page
// names the command that signs them.

import { el, fill } from "./parts/elements.js";
import { call, hasKey, keep, Problem } from "./parts/service.js";
import { problem } from "./parts/states.js";

const CAN_BE_A_KEY = /^[!-~]+$/; // what a header takes
const UNKNOWN = "The service does not know this key, or it is no longer good.";

// Resolves once the service lets the viewer in.
export async function entered(place, corner) {
  let wasRefused = false;
  for (let refused = await refusal(); refused !== null; refused = await refusal()) {
    if (isAboutAccess(refused) && hasKey()) {
      keep(null); // without a key, the answer shows how the service identifies callers
      showCorner(corner);
      wasRefused = true;
    } else {
      await answered(place, refused, wasRefused);
      wasRefused = false;
    }
  }
  showCorner(corner);
}

export async function isShutOut() {
  return isAboutAccess(await refusal());
}

async function refusal() {
  try {
    await call("GET", ["health"]);
    return null;
  } catch (error) {
    return error;
  }
}

function isAboutAccess(error) {
  return error instanceof Problem && error.isAboutAccess;
}

function answered(place, error, wasRefused) {
  return new Promise((resolve) => {
    const again = el("button", { type: "button", on: { click: resolve } }, "Try again");
    const other = el("button", { type: "button", on: { click: () => { keep(null); resolve(); } } }, "Take another key");
    if (!isAboutAccess(error)) fill(place, problem(error), el("div", { class: "buttons" }, again, hasKey() && other));
    else if (error.status === 403) fill(place, signedOnly(), again);
    else fill(place, keyForm(wasRefused, resolve));
    place.querySelector("input")?.focus();
  });
}

function keyForm(wasRefused, entered) {
  const input = el("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", placeholder: "dw_…" });
  const refused = el("div", { role: "alert" }, wasRefused && keyRefused(UNKNOWN));
  const enter = (event) => {
    event.preventDefault();
    const key = input.value.trim();
    if (!CAN_BE_A_KEY.test(key)) return void fill(refused, keyRefused("A key is one word that begins with dw_."));
    keep(key);
    entered();
  };
  return el(
    "form",
    { class: "entrance", novalidate: true, on: { submit: enter } },
    el("h1", {}, "Which key is yours?"),
    el("p", {}, "This deployment knows its callers by API keys. The key is kept for this tab alone and is forgotten when it is closed."),
    el("label", { for: "key" }, "API key"),
    input,
    refused,
    el("div", { class: "buttons" }, el("button", { class: "primary" }, "Enter")),
  );
}

function keyRefused(text) {
  return el("p", { class: "problem" }, text);
}

function signedOnly() {
  return el(
    "section",
    { class: "entrance" },
    el("h1", {}, "Requests are signed here"),
    el("p", {}, "This deployment knows its callers by AWS credentials, which a browser does not have. The command line does: it shows this console and signs its requests as you."),
    el("pre", {}, el("code", {}, "pip install 'duewheel[cli,aws]'\nduewheel console --stack NAME --profile PROFILE")),
  );
}

function showCorner(corner) {
  const leave = () => { keep(null); location.reload(); };
  fill(corner, hasKey() && el("button", { type: "button", on: { click: leave } }, "Forget the key"));
}
