// The settings of a business as people read them, each with whether it is its own.

import { MEMBERS } from "../../parts/callback_form.js";
import { el } from "../../parts/elements.js";
import { span } from "../../parts/instants.js";
import { shownOnOutcome } from "../../parts/on_outcome.js";
import { badge, facts } from "../../parts/table.js";

export function settings(business) {
  const own = new Set(business.own);
  return facts(SETTINGS.map(([name, label, said, lines]) => [label, [said(business[name], business), " ", origin(own.has(name)), lines?.(business[name])]]));
}

function origin(isOwn) {
  return isOwn ? badge("own", "accent") : el("span", { class: "quiet" }, "· service default");
}

const SETTINGS = [
  ["callback", "Callback", (value) => (value === null ? "none: each task says its own" : callback(value)), headers],
  ["retry", "Retries", retries],
  ["timeout_seconds", "A call may take", (value) => span(value * 1000)],
  ["tolerance_seconds", "Called later by", (value) => (value === 0 ? "nothing: to the millisecond" : `up to ${span(value * 1000)}, at shared seconds`)],
  ["retry_statuses", "Tried again on", (value) => value.join(", ") || "none"],
  ["stop_statuses", "Ended by", (value) => value.join(", ") || "none"],
  ["allowed_hosts", "Allowed hosts", (value) => value?.join(", ") ?? "all"],
  ["trusted_origins", "Default headers also go to", (value) => value?.join(", ") ?? "no other origin"],
  ["on_outcome", "Told of outcomes", shownOnOutcome],
  ["calls_per_second", "Calls a second", limit],
  ["calls_in_flight", "Calls in flight", limit],
  ["creates_per_second", "Creates a second", limit],
  ["flow", "Limits of each flow key", (value) => (value === null ? "none" : el("code", {}, JSON.stringify(value)))],
  ["paused_flow_keys", "Paused flow keys", (value) => value.join(", ") || "none"],
  ["priority", "Priority", (value) => value],
  ["signing_secrets", "Signing secrets", (value) => value?.join(", ") ?? "none: calls are not signed"],
  ["secrets", "Named secrets", (value) => value?.join(", ") ?? "none"],
  ["keep_answers", "Kept of the last answer", (value) => (value === null ? "its beginning, in the history" : `${limit(value.body_bytes)} bytes of its body${value.headers?.length ? `, and ${value.headers.join(", ")}` : ""}`)],
  ["retention_days", "Ended tasks are kept", (value) => `${value} days`],
];

function limit(value) {
  return value === null ? "no limit" : value.toLocaleString("en-GB");
}

const WHERE = Object.values(MEMBERS).map(([address]) => address);

function callback({ type, headers: _, attributes: __, ...more }) {
  const where = WHERE.map((name) => more[name]).find(Boolean) ?? "each task's own address";
  const rest = Object.entries(more).filter(([name, value]) => !WHERE.includes(name) && value !== null);
  return [`${type} `, el("code", {}, where), rest.map(([name, value]) => ` · ${name} ${value}`)];
}

function headers(callback) {
  const lines = [...Object.entries(callback?.headers ?? {}), ...Object.entries(callback?.attributes ?? {})];
  return lines.length > 0 && el("ul", { class: "lines" }, lines.map(([name, value]) => el("li", {}, el("code", {}, `${name}: ${value}`))));
}

function retries({ attempts, delays_seconds: delays, max_age_seconds: age, ...backoff }) {
  const waits = delays
    ? `waiting ${delays.map(inSeconds).join(", ")}${delays.length < attempts - 1 ? ", then the last again" : ""}`
    : `from ${inSeconds(backoff.first_delay_seconds)}, times ${backoff.factor}, up to ${inSeconds(backoff.max_delay_seconds)}`;
  return `${attempts} ${attempts === 1 ? "attempt" : "attempts"}, ${waits}${age ? `; given up ${inSeconds(age)} after the due instant` : ""}`;
}

function inSeconds(seconds) {
  return span(Math.round(seconds * 1000));
}
