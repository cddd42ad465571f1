// Numbers as they are typed.

// null where nothing is typed; what is no number goes to the service as it is, which says so.
export function typedNumber(text) {
  if (text === "") return null;
  return Number.isFinite(Number(text)) ? Number(text) : text;
}
