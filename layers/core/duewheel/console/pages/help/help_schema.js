// JSON Schema in words: members with what they may be, and what they refer to folded behind a name.

import { el } from "../../parts/elements.js";
import { badge } from "../../parts/table.js";

// What a `$ref` leads to; a schema without one is its own.
export function target(schema, document) {
  if (!schema.$ref) return schema;
  return schema.$ref.replace("#/", "").split("/").reduce((place, part) => place[part], document);
}

export function schemaView(schema, document) {
  if (schema.$ref) return folded(schema, document);
  const choices = alternatives(schema);
  return [
    schema.description && el("p", {}, prose(schema.description)),
    conditionOf(schema) && el("p", {}, conditionOf(schema)),
    schema.properties && members(schema, document),
    byAnyName(schema) && el("p", {}, "Members by any name: ", said(schema.additionalProperties, document), nested(schema.additionalProperties, document)),
    choices.length > 0 && [el("p", {}, "One of:"), el("ul", { class: "members" }, choices.map((choice) => el("li", {}, line(choice, document), nested(choice, document))))],
    schema.type === "array" && el("p", {}, said(schema, document), nested(schema, document)),
    !schema.properties && choices.length === 0 && schema.type !== "array" && !byAnyName(schema) && el("p", {}, said(schema, document)),
  ];
}

// Made when it is opened, since schemas may lead back to themselves.
function folded(schema, document) {
  const open = (event) => {
    const { currentTarget: details } = event;
    if (details.open && details.childElementCount === 1) details.append(el("div", { class: "members" }, schemaView(target(schema, document), document)));
  };
  return el("details", { on: { toggle: open } }, el("summary", {}, el("code", {}, nameOf(schema))));
}

function members({ properties, required = [] }, document) {
  const one = ([name, schema]) => el(
    "li",
    {},
    el("code", {}, name), " ", line(schema, document),
    required.includes(name) && [" ", badge("required", "accent")],
    schema.description && [" – ", prose(schema.description)],
    nested(schema, document),
  );
  return el("ul", { class: "members" }, Object.entries(properties).map(one));
}

function nameOf(schema) {
  return schema.$ref.split("/").at(-1);
}

// Parts of a schema that do not fit into a line are shown below it.
function nested(schema, document) {
  if (schema.$ref) return isPlain(target(schema, document)) ? null : folded(schema, document);
  if (schema.items) return nested(schema.items, document);
  if (schema.properties || byAnyName(schema) && !isPlain(schema.additionalProperties)) return schemaView({ ...schema, description: null }, document);
  return alternatives(schema).map((choice) => nested(choice, document));
}

// As words, unless it is shown folded below them.
function line(schema, document) {
  return schema.$ref && !isPlain(target(schema, document)) ? null : said(schema, document);
}

// Text between backticks is code.
export function prose(text = "") {
  return text.split("`").map((part, index) => (index % 2 === 1 ? el("code", {}, part) : part));
}

// In a few words: `integer from 1 to 100, by default 50`.
export function said(schema, document) {
  if (schema.$ref) {
    const meant = target(schema, document);
    return isPlain(meant) ? said(meant, document) : nameOf(schema);
  }
  return [kindOf(schema, document), ...boundsOf(schema)].join(", ");
}

function kindOf(schema, document) {
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  const choices = alternatives(schema);
  if (choices.length > 0) return choices.map((choice) => said(choice, document)).join(" or ");
  if (schema.items) return [schema.type].flat().map((type) => (type === "array" ? `array of ${said(schema.items, document)}` : type)).join(" or ");
  if (byAnyName(schema)) return `object of ${said(schema.additionalProperties, document)} by name`;
  return schema.type ? [schema.type].flat().join(" or ") : "any JSON";
}

const FORMATS = { "date-time": "an instant (RFC 3339)", date: "a date (RFC 3339)" };

function boundsOf(schema) {
  return [
    FORMATS[schema.format] ?? schema.format,
    between("from", "to", schema.minimum, schema.maximum, ""),
    between("at least", "at most", schema.minLength, schema.maxLength, " characters"),
    between("at least", "at most", schema.minItems, schema.maxItems, " items"),
    between("at least", "at most", schema.minProperties, schema.maxProperties, " members"),
    schema.pattern && `as ${schema.pattern}`,
    schema.propertyNames?.enum && `names ${schema.propertyNames.enum.join(", ")}`,
    schema.propertyNames?.pattern && `names as ${schema.propertyNames.pattern}`,
    schema.not && "const" in schema.not && `not ${JSON.stringify(schema.not.const)}`,
    "default" in schema && `by default ${JSON.stringify(schema.default)}`,
  ].filter(Boolean);
}

function between(low, high, least, most, unit) {
  const said = [least !== undefined && `${low} ${least.toLocaleString("en")}`, most !== undefined && `${high} ${most.toLocaleString("en")}`].filter(Boolean);
  return said.length > 0 && `${said.join(" ")}${unit}`;
}

// `oneOf` of schemas is a choice; of mere lists of members it is a condition on these.
function alternatives(schema) {
  return (schema.oneOf ?? schema.anyOf ?? []).filter((choice) => !isCondition(choice));
}

function conditionOf(schema) {
  const conditions = (schema.oneOf ?? schema.anyOf ?? []).filter(isCondition);
  const names = conditions.filter(({ required }) => required).map(({ required }) => required.join(" with "));
  if (names.length === 0) return null;
  const mayBeNone = conditions.some(({ not, required }) => not && !required);
  const word = schema.anyOf ? "At least" : mayBeNone ? "At most" : "Exactly";
  return `${word} one of ${names.join(", ")}.`;
}

function isCondition(choice) {
  return Object.keys(choice).every((name) => name === "required" || name === "not");
}

function byAnyName(schema) {
  return typeof schema.additionalProperties === "object";
}

function isPlain(schema) {
  return !schema.$ref && !schema.properties && !schema.items && !byAnyName(schema) && alternatives(schema).length === 0;
}
