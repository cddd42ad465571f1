// The page of an address. It is the part behind the `#`, so that all pages are one file to the server.

// Pages by their paths, `tasks/:id`. A page is a function of {place, parameters, query, signal}.
export class Router {
  // The first one is that of an address without a path, `unknown` that of any other path.
  constructor(place, pages, unknown, failed) {
    this.place = place;
    this.pages = Object.entries(pages).map(([path, page]) => [path.split("/"), page]);
    this.unknown = unknown;
    this.failed = failed;
    this.leaving = new AbortController();
    this.moved = () => this.open();
  }

  start() {
    window.addEventListener("hashchange", this.moved);
    return this.open();
  }

  // Until it is started again, no page is open and none is opened.
  close() {
    window.removeEventListener("hashchange", this.moved);
    this.leaving.abort();
  }

  async open() {
    this.leaving.abort(); // what the page before still does is none of this one's business
    this.leaving = new AbortController();
    const { signal } = this.leaving;
    const { parts, query } = whereabouts(location.hash);
    const [page, parameters] = this.meant(parts);
    markCurrent(parts[0]);
    const hadFocus = this.place.contains(document.activeElement);
    this.place.replaceChildren();
    if (hadFocus) this.place.focus(); // what had it has gone; the keyboard goes on from here
    try {
      await page({ place: this.place, parameters, query, signal });
    } catch (error) {
      if (!signal.aborted) this.failed(this.place, error);
    }
  }

  meant(parts) {
    for (const [path, page] of this.pages) {
      const parameters = match(path, parts);
      if (parameters !== null) return [page, parameters];
    }
    return [parts.length === 0 ? this.pages[0][1] : this.unknown, {}];
  }
}

export function whereabouts(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decoded), query: Object.fromEntries(new URLSearchParams(query)) };
}

// link(["tasks", id], {cursor}) → "#/tasks/…?cursor=…"
export function link(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const behind = given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
  return `#/${parts.map(encodeURIComponent).join("/")}${behind}`;
}

export function go(parts, query) {
  location.hash = link(parts, query);
}

function match(path, parts) {
  if (path.length !== parts.length) return null;
  const parameters = {};
  for (const [index, part] of path.entries()) {
    if (part.startsWith(":")) parameters[part.slice(1)] = parts[index];
    else if (part !== parts[index]) return null;
  }
  return parameters;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a lone `%`, typed by hand
  }
}

function markCurrent(first) {
  const nav = document.querySelector("header nav");
  for (const anchor of nav.querySelectorAll("a")) {
    const isCurrent = whereabouts(anchor.hash).parts[0] === (first ?? "overview");
    if (isCurrent) nav.scrollLeft = anchor.offsetLeft - (nav.clientWidth - anchor.offsetWidth) / 2; // it may be wider than a telephone
    if (isCurrent) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}
