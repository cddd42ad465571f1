// Where to call: left to the business, over HTTP by fields, or anything the service takes as JSON.

import { choiceOfFields } from "./choice_of_fields.js";
import { area, choice, text } from "./form.js";
import { Problem } from "./service.js";

const METHODS = [["", "the business's"], "GET", "POST", "PUT", "PATCH", "DELETE"];
const EXAMPLE = 'as the API takes it: {"type": "sqs", "queue_url": "…"}';

export function callbackFields(callback) {
  const isHttp = callback?.type === "http" && callback.body === undefined;
  const { url, method, headers } = isHttp ? callback : {};
  const lines = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  const asJson = callback && !isHttp ? JSON.stringify(callback, null, 2) : "";
  const groups = {
    business: { said: "as the business says", fields: [] },
    http: {
      said: "HTTP",
      fields: [
        text("callback.url", "URL", url ?? "", { inputmode: "url", hint: "empty: the business's" }),
        choice("callback.method", "Method", METHODS, method ?? ""),
        area("callback.headers", "Headers", lines.join("\n"), { hint: "one a line, as name: value", rows: 3 }),
      ],
    },
    json: { said: "JSON (AWS targets, raw bodies)", fields: [area("callback", "Callback", asJson, { hint: EXAMPLE })] },
  };
  return choiceOfFields("callback_by", "Calls", groups, callback ? (isHttp ? "http" : "json") : "business");
}

// The member `callback` of a request; null: the business's.
export function typedCallback(values) {
  if (values.callback_by === "business") return null;
  if (values.callback_by === "json") return parsedAt("callback", values.callback);
  const { "callback.url": url, "callback.method": method, "callback.headers": lines } = values;
  const headers = typedHeaders(lines);
  return { type: "http", ...(url && { url }), ...(method && { method }), ...(Object.keys(headers).length > 0 && { headers }) };
}

export function parsedAt(field, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem(422, { field, detail: `is no JSON: ${error.message}` });
  }
}

function typedHeaders(lines) {
  const headers = new Map();
  for (const line of lines.split("\n").filter((line) => line.trim() !== "")) {
    const [, name, value] = /^\s*([^:]+?)\s*:(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new Problem(422, { field: "callback.headers", detail: `${line.trim()}: is no header; write name: value.` });
    if (headers.has(name)) throw new Problem(422, { field: "callback.headers", detail: `${name}: stands there twice.` });
    headers.set(name, value.trim());
  }
  return Object.fromEntries(headers);
}
