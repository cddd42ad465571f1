// Calls the service with the viewer's access, and shows errors in the service's own words.

import { heard } from "./clock.js";

const KEY = "duewheel-key"; // in this tab's own storage, gone with it

let key = sessionStorage.getItem(KEY);
let heardOfAccess = () => {};

export function keep(newKey) {
  key = newKey;
  if (newKey === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, newKey);
}

export function hasKey() {
  return key !== null;
}

// A refusal: a problem document of the service, an answer of API Gateway, or no answer at all.
export class Problem extends Error {
  constructor(status, { type = "", title, detail, message, field, ...more } = {}) {
    super(detail ?? message ?? title ?? "");
    this.status = status;
    this.type = type.replace("urn:duewheel:problem:", "");
    this.title = title ?? SAID[status] ?? `The service answered ${status}`;
    this.field = field ?? null;
    this.more = more;
  }

  // API Gateway does not know the caller. `duewheel console` says in a problem of its own what to do then.
  get isAboutAccess() {
    return this.type === "" && (this.status === 401 || this.status === 403);
  }
}

const SAID = {
  0: "The service does not answer",
  401: "The service asks who is calling",
  403: "The service does not let this caller in",
  404: "There is nothing here",
  429: "Too many requests",
  502: "The service does not answer",
  503: "The service cannot answer now",
  504: "The service took too long",
};

// call("GET", ["tasks", id], {query: {limit: 10}}) → {status, members, text, etag} Parts of a path are encoded here, so
// that slashes in a key stay within their part.
export async function call(method, path, { query = {}, body, headers = {}, signal } = {}) {
  const reply = await sent(method, `${address(path)}${queryOf(query)}`, body, headers, signal);
  heard(reply.headers.get("date"));
  const text = await reply.text();
  const members = parsed(text);
  if (!reply.ok) throw refused(new Problem(reply.status, members ?? {}));
  return { status: reply.status, members, text, etag: reply.headers.get("etag") };
}

// `heard` is called for each answer that refuses the caller's access.
export function onRefusedAccess(heard) {
  heardOfAccess = heard;
}

function refused(problem) {
  if (problem.isAboutAccess) heardOfAccess();
  return problem;
}

async function sent(method, address, body, headers, signal) {
  const bearer = key === null ? {} : { authorization: `Bearer ${key}` };
  const json = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  const options = { method, headers: { ...bearer, ...headers }, body: json, signal, cache: "no-store", redirect: "error" };
  try {
    return await fetch(address, options);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, { detail: `No answer came from ${location.origin}.` });
  }
}

export function address(path) {
  // A browser would take these for directions, however they are written.
  const lost = path.find((part) => ["", ".", ".."].includes(part));
  if (lost !== undefined) throw new Problem(404, { title: "It cannot be asked for here", detail: `A browser cannot send the name "${lost}" as a part of an address.` });
  return `/v1/${path.map(encodeURIComponent).join("/")}`;
}

function queryOf(query) {
  const pairs = Object.entries(query).flatMap(([name, value]) => [value].flat().map((one) => [name, one])); // a list repeats its name
  const given = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // an answer without JSON is not from the service; its status is used
  }
}
