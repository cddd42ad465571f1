// Cuts a member out of the text of a JSON object as it was written: parsed and written anew, 1e400 and
// 12345678901234567890 would become other numbers, and repeated members one.

// The text of the top-level member `name`, or null. `text` has been parsed, so it is JSON.
export function rawMember(text, name) {
  let at = behindBlanks(text, behindBlanks(text, 0) + 1);
  while (text[at] === '"') {
    const nameEnd = stringEnd(text, at);
    const begin = behindBlanks(text, behindBlanks(text, nameEnd) + 1); // behind the colon
    const end = valueEnd(text, begin);
    if (JSON.parse(text.slice(at, nameEnd)) === name) return text.slice(begin, end);
    at = behindBlanks(text, behindBlanks(text, end) + 1); // behind the comma
  }
  return null;
}

// Where the string that begins at `at` has ended.
export function stringEnd(text, at) {
  let end = at + 1;
  while (text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
  return end + 1;
}

function valueEnd(text, begin) {
  if (text[begin] === '"') return stringEnd(text, begin);
  if (text[begin] === "{" || text[begin] === "[") return nestEnd(text, begin);
  let end = begin;
  while (/[^\s,\]}]/.test(text[end] ?? " ")) end += 1;
  return end;
}

function nestEnd(text, begin) {
  let depth = 0;
  let at = begin;
  do {
    if (text[at] === '"') {
      at = stringEnd(text, at);
      continue;
    }
    if (text[at] === "{" || text[at] === "[") depth += 1;
    if (text[at] === "}" || text[at] === "]") depth -= 1;
    at += 1;
  } while (depth > 0);
  return at;
}

function behindBlanks(text, at) {
  while (/\s/.test(text[at] ?? "")) at += 1;
  return at;
}
