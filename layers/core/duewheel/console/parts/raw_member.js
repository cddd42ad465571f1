// A member of an answer as the very text it stands in: numbers beyond JavaScript's, member order and
// escapes survive.

// rawMember('{"a": 1, "payload": 1e400}', "payload") → "1e400"; null where there is no such member.
// `text` is an object that JSON.parse takes. Of a member that is repeated the last counts.
export function rawMember(text, name) {
  let found = null;
  let at = afterBlanks(text, afterBlanks(text, 0) + 1); // behind the first brace
  while (text[at] === '"') {
    const nameEnd = endOfString(text, at);
    const start = afterBlanks(text, afterBlanks(text, nameEnd) + 1); // behind the colon
    const end = endOfValue(text, start);
    if (JSON.parse(text.slice(at, nameEnd)) === name) found = text.slice(start, end).trimEnd();
    at = afterBlanks(text, end + 1); // behind the comma
  }
  return found;
}

function afterBlanks(text, at) {
  while (" \t\r\n".includes(text[at] ?? "x")) at += 1;
  return at;
}

function endOfString(text, at) {
  for (at += 1; text[at] !== '"'; at += 1) if (text[at] === "\\") at += 1;
  return at + 1;
}

// Where the comma or the brace stands that ends a value of the outermost object.
function endOfValue(text, at) {
  for (let depth = 0; depth > 0 || !",}".includes(text[at]); ) {
    if (text[at] === '"') {
      at = endOfString(text, at);
      continue;
    }
    if ("{[".includes(text[at])) depth += 1;
    if ("}]".includes(text[at])) depth -= 1;
    at += 1;
  }
  return at;
}
