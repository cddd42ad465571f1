// Lays JSON out for reading without reading it: every number, string and name stays as it was written.

import { stringEnd } from "./raw_member.js";

const STEP = "  ";
const STEPS_MAX = 40; // deeper nesting keeps to the page

export function laidOut(text) {
  let out = "";
  let depth = 0;
  const line = () => `\n${STEP.repeat(Math.min(depth, STEPS_MAX))}`;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    const end = wholeEnd(text, at);
    if (end > at) {
      out += text.slice(at, end).replace(/^([{[])\s+/, "$1");
      at = end - 1;
    } else if ("{[".includes(character)) {
      depth += 1;
      out += character + line();
    } else if ("}]".includes(character)) {
      depth -= 1;
      out += line() + character;
    } else if (character === ",") out += character + line();
    else if (character === ":") out += ": ";
    else if (!/\s/.test(character)) out += character;
  }
  return out;
}

// The end of what is kept together: a string, or brackets with nothing in them.
function wholeEnd(text, at) {
  if (text[at] === '"') return stringEnd(text, at);
  const nothing = /[{[]\s*[}\]]/y;
  nothing.lastIndex = at;
  return nothing.test(text) ? nothing.lastIndex : at;
}
