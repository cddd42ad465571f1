// The settings of a business to be changed. A blank field is the service's default. Only fields that were changed here
// are sent, and only if the settings are otherwise unchanged meanwhile.

import { changedMembers } from "../../parts/changed_members.js";
import { el, fill } from "../../parts/elements.js";
import { form, values } from "../../parts/form.js";
import { told } from "../../parts/outcomes.js";
import { link, go } from "../../parts/router.js";
import { call, Problem } from "../../parts/service.js";
import { loading, problem } from "../../parts/states.js";
import { isConfigured, read } from "./business.js";
import { settingFields, wantedSettings } from "./business_fields.js";
import { businessHead } from "./business_head.js";

export async function businessFormPage({ place, parameters: { name }, signal }) {
  const body = el("div", {}, loading());
  fill(place, businessHead(name, "Settings"), body);
  await load({ name, body, signal });
}

async function load({ name, body, signal }) {
  const found = await read(name, signal);
  const conflict = el("div");
  const fields = settingFields(found?.members ?? null);
  const anew = async () => {
    try {
      await load({ name, body, signal });
      body.querySelector("select, input").focus();
    } catch (error) {
      fill(conflict, problem(error));
    }
  };
  const submit = (typed) => {
    fill(conflict);
    return save({ name, found, changed: changedMembers(before, wantedSettings(typed)), conflict, anew, signal });
  };
  const leave = el("a", { class: "button", href: link(["businesses", name]) }, "Leave as it is");
  const element = form([fields, conflict], "Save", submit, { also: leave, class: "settings", "aria-label": "Settings" });
  const before = wantedSettings(values(element));
  const intro = !isConfigured(found) ? "It has no settings of its own yet. " : "";
  fill(
    body,
    el("p", { class: "hint" }, `${intro}What is left blank is the service's default. A change holds within five seconds, also for tasks that are pending already.`),
    element,
  );
}

async function save({ name, found, changed, conflict, anew, signal }) {
  if (Object.keys(changed).length === 0 && isConfigured(found)) return void told("Nothing differs: nothing was saved.");
  const headers = !isConfigured(found) ? { "If-None-Match": "*" } : { "If-Match": found.etag };
  try {
    await call("PUT", ["businesses", name], { body: changed, headers });
  } catch (error) {
    if (error instanceof Problem && error.status === 412) fill(conflict, changedMeanwhile(anew));
    throw error;
  }
  told(`The settings of ${name} are saved; they hold within five seconds.`);
  if (!signal.aborted) go(["businesses", name]);
}

function changedMeanwhile(anew) {
  return el(
    "div",
    { class: "problem" },
    el("p", {}, "Another caller has changed the settings since they were read here. Nothing was saved. Load them again to see what holds now; what you have typed is lost then."),
    el("button", { type: "button", on: { click: anew } }, "Load again"),
  );
}
