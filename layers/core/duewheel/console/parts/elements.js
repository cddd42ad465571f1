// Makes only elements: text stays text, whatever its origin.

const SVG = "http://www.w3.org/2000/svg";
const PLACES = /^(#|\/(?!\/)|https?:\/\/)/; // where a link may lead; no `javascript:`

// el("a", {href: "#/tasks", class: "row", on: {click: open}}, "text", otherElement, [more], null)
export function el(tag, attributes = {}, ...children) {
  return built(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return built(document.createElementNS(SVG, tag), attributes, children);
}

function built(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function set(element, name, value) {
  if (name === "on") return listen(element, value);
  if (value === null || value === undefined || value === false) return;
  if (/^on/i.test(name) || name === "style" || name === "srcdoc") throw new Error(`no attribute ${name} here`);
  if (name === "href" && !PLACES.test(value)) return;
  if (name === "value" && "value" in element) element.value = value;
  else element.setAttribute(name, value === true ? "" : value);
}

// What is heard is kept on the element, so that a refresh can put a later page's in its place.
function listen(element, listeners) {
  element.heard = listeners;
  for (const kind of Object.keys(listeners)) element.addEventListener(kind, heard);
}

function heard(event) {
  return event.currentTarget.heard?.[event.type]?.(event);
}

export function fill(place, ...children) {
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
}
