// Several things typed into one field, with blanks, commas or line ends between them.
export function words(text) {
  return text.split(/[\s,]+/).filter(Boolean);
}
