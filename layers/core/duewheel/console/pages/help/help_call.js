// One call of the API, folded: what it takes, what it answers, and an example of each.

import { el } from "../../parts/elements.js";
import { link } from "../../parts/router.js";
import { badge } from "../../parts/table.js";
import { prose, said, schemaView, target } from "./help_schema.js";

// What it holds is made when it is opened: most calls are not.
export function callDetails(one, document) {
  const { method, path, operation } = one;
  const open = (event) => {
    const { currentTarget: details } = event;
    if (details.open && details.childElementCount === 1) details.append(...contents(one, document).flat(Infinity).filter(Boolean));
  };
  return el(
    "details",
    { class: "call", "data-call": operation.operationId, on: { toggle: open } },
    el("summary", {}, el("span", { class: "method mono" }, method), el("span", { class: "mono" }, path), " ", prose(operation.summary)),
  );
}

// The texts that a call is found by.
export function wordsOf({ method, path, operation }, document) {
  const parameters = (operation.parameters ?? []).flatMap(({ name, description = "" }) => [name, description]);
  const answers = Object.values(operation.responses).map(({ description }) => description);
  const members = Object.values(operation.requestBody?.content ?? {}).flatMap(({ schema }) => Object.keys(target(schema, document).properties ?? {}));
  return [method, path, operation.operationId, operation.summary, operation.description ?? "", ...operation.tags, ...parameters, ...answers, ...members].join(" ").toLowerCase();
}

function contents({ operation }, document) {
  return [
    el("p", {}, prose(operation.description), " ", el("a", { href: link(["help"], { call: operation.operationId }) }, "Link to this call")),
    parameters(operation.parameters, document),
    operation.requestBody && [el("h4", {}, "Body"), bodies(operation.requestBody, document)],
    el("h4", {}, "Answers"),
    Object.entries(operation.responses).map(([status, answer]) => answerDetails(status, answer, document)),
  ];
}

function parameters(known = [], document) {
  if (known.length === 0) return null;
  const one = ({ name, in: where, required, description, schema }) => el(
    "li",
    {},
    el("code", {}, name), ` in the ${where}, `, said(schema, document), required && [" ", badge("required", "accent")],
    description && [" – ", prose(description)],
  );
  return [el("h4", {}, "Parameters"), el("ul", { class: "members" }, known.map(one))];
}

function answerDetails(status, answer, document) {
  const headers = Object.entries(answer.headers ?? {}).map(([name, header]) => {
    const { description } = target(header, document);
    return el("li", {}, "header ", el("code", {}, name), description && [" ", prose(description)]);
  });
  return el(
    "details",
    {},
    el("summary", {}, el("code", {}, status), " ", prose(answer.description)),
    headers.length > 0 && el("ul", { class: "members" }, headers),
    bodies(answer, document),
  );
}

function bodies({ content = {} }, document) {
  return Object.entries(content).map(([type, { schema, examples = {} }]) => [
    el("p", { class: "quiet" }, el("code", {}, type), schema?.$ref && [" ", schema.$ref.split("/").at(-1)]),
    schema && schemaView(target(schema, document), document),
    Object.entries(examples).map(([name, { value }]) => el(
      "details",
      {},
      el("summary", {}, "Example ", el("code", {}, name)),
      el("pre", {}, el("code", {}, typeof value === "string" ? value : JSON.stringify(value, null, 2))),
    )),
  ]);
}
