// Makes a timer, or changes what one says, with what it has ahead beside it.

import { changedMembers } from "../../parts/changed_members.js";
import { el, fill } from "../../parts/elements.js";
import { form, values } from "../../parts/form.js";
import { maker } from "../../parts/making.js";
import { told } from "../../parts/outcomes.js";
import { rawMember } from "../../parts/raw_member.js";
import { go, link } from "../../parts/router.js";
import { call, Problem } from "../../parts/service.js";
import { loading, problem } from "../../parts/states.js";
import { Preview } from "./timer_preview.js";
import { isUnknownTimer, unknownTimer } from "./timer_unknown.js";
import { BLANK, bodyOf, saidMembers, timerFields, typedMembers } from "./timer_fields.js";

export async function newTimerPage({ place, query, signal }) {
  const preview = new Preview(null);
  const fields = timerFields(BLANK, "", { business: query.biz_type ?? "", preview, signal });
  const make = maker(["timers"]);
  const submit = async (typed, payload) => {
    const { members } = await make(bodyOf(saidMembers(typed), payload || null));
    told(`${members.name} is made.`);
    if (!signal.aborted) go(["timers", members.timer_id]);
  };
  show(place, { title: "New timer", fields, verb: "Make the timer", submit, back: ["timers"], preview, signal });
}

export async function editTimerPage({ place, parameters: { id }, signal }) {
  fill(place, el("h1", {}, "Timer"), loading());
  const path = ["timers", id];
  const found = await readTimer(path, signal);
  if (found === null) return fill(place, unknownTimer(id));
  const { members: timer, text, etag } = found;
  const payload = timer.payload === null ? "" : rawMember(text, "payload");
  const stale = el("div", { role: "alert" });
  const loadAnew = async () => {
    try {
      await editTimerPage({ place, parameters: { id }, signal });
    } catch (refused) {
      if (!signal.aborted) fill(place, problem(refused));
    }
  };
  const change = async (typed, payloadNow, before) => {
    fill(stale);
    const body = changedBody(changedMembers(before.typed, typed), before.payload, payloadNow);
    if (body === null) throw new Problem(422, { title: "Nothing is changed" });
    try {
      const { members } = await call("PATCH", path, { body, headers: { "if-match": etag } });
      told(`${members.name} is changed.`);
      if (!signal.aborted) go(path);
    } catch (error) {
      if (error instanceof Problem && error.type === "version-mismatch") fill(stale, anew(error, loadAnew));
      else throw error;
    }
  };
  const preview = new Preview(timer);
  const fields = [timerFields(timer, payload, { business: null, preview, signal }), stale];
  show(place, { title: `Change ${timer.name}`, fields, verb: "Save", submit: change, back: path, preview, signal });
}

// null where there is none.
async function readTimer(path, signal) {
  try {
    return await call("GET", path, { signal });
  } catch (error) {
    if (isUnknownTimer(error)) return null;
    throw error;
  }
}

// null where nothing is changed.
function changedBody(members, payloadBefore, payload) {
  if (payload === payloadBefore) return Object.keys(members).length === 0 ? null : bodyOf(members, null);
  if (payload === "") throw new Problem(422, { field: "payload", detail: "cannot be taken away again; null is a value, and can be sent." });
  return bodyOf(members, payload);
}

function anew({ message }, load) {
  return el(
    "div",
    { class: "problem" },
    el("p", {}, "Somebody else has changed the timer in the meantime: ", message),
    el("button", { type: "button", on: { click: load } }, "Load it again, without these changes"),
  );
}

function show(place, { title, fields, verb, submit, back, preview, signal }) {
  const also = el("a", { class: "button", href: link(back) }, "Leave it");
  const send = (given) => submit(typedMembers(given), given.payload, before);
  const element = form(fields, verb, send, { also, class: "timer-form" });
  const first = values(element);
  const before = { typed: typedMembers(first), payload: first.payload };
  preview.follow(element, signal);
  fill(place, el("h1", {}, title), element);
}
