// Help: the calls of the API as its own document tells them, its problems, and the console's keys.

import { el, fill } from "../../parts/elements.js";
import { link } from "../../parts/router.js";
import { call } from "../../parts/service.js";
import { loading, problem } from "../../parts/states.js";
import { facts, table } from "../../parts/table.js";
import { documentHref } from "./document.js";
import { callDetails, wordsOf } from "./help_call.js";
import { prose } from "./help_schema.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const PROBLEM = "urn:duewheel:problem:";
const KEYS = [
  ["Tab, Shift+Tab", "go from one thing to the next, and back; the first stop of each page leads past the navigation"],
  ["Enter", "follows a link, presses a button, sends a form, opens what is folded"],
  ["/", "goes to the search box; the arrow keys choose among what it suggests"],
  ["Esc", "leaves a dialog, and does nothing; leaves the search box"],
  ["← →", "go from point to point of a chart; Page Up and Page Down by tens, Home and End to its ends"],
];
const DOCS = [
  ["docs/quickstart.md", "the first task, and what comes after it"],
  ["docs/concepts.md", "how the parts belong together"],
  ["docs/api.md", "the calls, with examples; problems; limits"],
  ["docs/delivery.md", "how callbacks are made, signed, retried and held back"],
  ["docs/timers.md", "what schedules mean"],
  ["docs/security.md", "who may do what, and where rights come from"],
  ["docs/reliability.md", "what is promised, and what keeps it"],
  ["docs/client.md", "the Python client"],
  ["docs/cli.md", "the command line"],
  ["docs/operations.md", "what to do about alarms, and how to look after a deployment"],
  ["docs/glossary.md", "the words"],
];

let document_ = null; // it is the same for as long as the console is open

export async function helpPage({ place, query, signal }) {
  const [calls, problems, version] = [el("div", {}, loading()), el("div"), el("span", { class: "quiet" }, "…")];
  fill(
    place,
    el("h1", {}, "Help"),
    facts([["Version", version], ["API", "/v1 of the address that this page came from"]]),
    el("h2", {}, "Keys of the keyboard"), facts(KEYS),
    el("h2", {}, "Documents of this release"), facts(DOCS.map(([path, about]) => [el("a", { class: "mono", href: documentHref(path) }, path), about])),
    el("h2", {}, "Calls"), calls,
    problems,
  );
  await Promise.all([shownVersion(version, signal), shownDocument(calls, problems, query, signal)]);
}

async function shownVersion(place, signal) {
  try {
    fill(place, (await call("GET", ["health"], { signal })).members.version);
  } catch (error) {
    if (!signal.aborted) fill(place, problem(error));
  }
}

async function shownDocument(calls, problems, query, signal) {
  try {
    document_ ??= (await call("GET", ["openapi.json"], { signal })).members;
  } catch (error) {
    if (!signal.aborted) fill(calls, problem(error));
    return;
  }
  if (signal.aborted) return;
  fill(calls, el("p", { class: "about" }, prose(document_.info.description)), listed(groupsOf(document_), query));
  fill(problems, el("h2", {}, "Problems"), problemsTable(document_.components.schemas));
  opened(calls, query.call);
}

// → [{name, description, calls: [{method, path, operation}]}], in the order of the document's tags.
function groupsOf({ paths, tags }) {
  const all = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => method in item).map((method) => ({ method: method.toUpperCase(), path, operation: item[method] })));
  return tags.map((tag) => ({ ...tag, calls: all.filter(({ operation }) => operation.tags.includes(tag.name)) }));
}

function listed(groups, { find = "" }) {
  const count = el("p", { class: "hint", role: "status" });
  const nothing = el("p", { class: "empty", hidden: true }, "No call has all of these words.");
  const shown = groups.map(({ name, description, calls }) => {
    const entries = calls.map((one) => ({ words: wordsOf(one, document_), element: callDetails(one, document_) }));
    const section = el("section", {}, el("h3", {}, name), el("p", { class: "quiet" }, prose(description)), entries.map(({ element }) => element));
    return { section, entries };
  });
  const input = el("input", { id: "find", type: "search", autocomplete: "off", spellcheck: "false", value: find, on: { input: () => narrowed(true) } });
  const narrowed = (isTyped) => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const left = shown.reduce((sum, group) => sum + narrowedGroup(group, words), 0);
    const all = shown.reduce((sum, { entries }) => sum + entries.length, 0);
    nothing.hidden = left > 0;
    count.textContent = left === all ? `${all} calls` : `${left} of ${all} calls`;
    // In the address, so that it can be shared, but no step of its own on the way back.
    if (isTyped) history.replaceState(null, "", link(["help"], { find: input.value }));
  };
  narrowed(false);
  return [el("label", { for: "find" }, "Find calls by words"), input, count, nothing, shown.map(({ section }) => section)];
}

function narrowedGroup({ section, entries }, words) {
  let left = 0;
  for (const entry of entries) {
    entry.element.hidden = !words.every((word) => entry.words.includes(word));
    if (!entry.element.hidden) left += 1;
  }
  section.hidden = left === 0;
  return left;
}

function opened(place, name) {
  const element = name && [...place.querySelectorAll("details.call")].find(({ dataset }) => dataset.call === name);
  if (!element) return;
  element.open = true;
  element.querySelector("summary").focus();
  element.scrollIntoView();
}

function problemsTable(schemas) {
  const known = Object.values(schemas)
    .map(({ title, properties }) => ({ title, type: properties?.type?.const, status: properties?.status?.const }))
    .filter(({ type }) => type?.startsWith(PROBLEM))
    .sort((a, b) => a.status - b.status || a.type.localeCompare(b.type));
  const columns = [["Status", ({ status }) => String(status)], ["Type", ({ type }) => el("code", {}, type)], ["Means", ({ title }) => title]];
  return table("Problems", columns, known, { key: ({ type }) => type });
}
