// Makes what a form asks for, once: the same body is the same request, however often it is sent; another one is another.

import { call } from "./service.js";

export function maker(path) {
  let [last, idempotencyKey] = [null, null];
  return (body) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    if (text !== last) [last, idempotencyKey] = [text, crypto.randomUUID()];
    return call("POST", path, { body: text, headers: { "idempotency-key": idempotencyKey } });
  };
}
