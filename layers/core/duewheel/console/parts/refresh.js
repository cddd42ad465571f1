// Shows later states of what is on the page without flicker: what is the same stays as it is, with
// its focus, its scroll position and what is typed into it.

const OWN_STATE = new Set(["INPUT", "TEXTAREA", "SELECT"]);

// Changes the contents of `place` into `children`, by as few changes as the order allows.
export function show(place, ...children) {
  const fresh = document.createElement(place.localName);
  fresh.append(...children.flat(Infinity).filter(Boolean));
  likenChildren(place, fresh);
}

function liken(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !isViewers(old, name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !isViewers(old, name)) old.setAttribute(name, value);
  }
  for (const kind of Object.keys(fresh.heard ?? {})) {
    if (!(kind in (old.heard ?? {}))) return void old.replaceWith(fresh);
  }
  old.heard = fresh.heard;
  if (OWN_STATE.has(old.nodeName)) return; // the viewer's, not the service's
  likenChildren(old, fresh);
}

// `data-key` identifies rows: a missing one is removed, a new one is inserted.
function likenChildren(place, fresh) {
  const wanted = [...fresh.childNodes];
  const ahead = new Set(wanted.map(keyOf));
  let old = place.firstChild;
  for (const child of wanted) {
    while (old !== null && keyOf(old) !== undefined && !ahead.has(keyOf(old))) old = removed(old);
    ahead.delete(keyOf(child));
    if (old === null || !isAlike(old, child)) {
      place.insertBefore(child, old);
      continue;
    }
    const next = old.nextSibling;
    liken(old, child);
    old = next;
  }
  while (old !== null) old = removed(old);
}

function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function keyOf(node) {
  return node.dataset?.key;
}

function isAlike(old, fresh) {
  return old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);
}

function isViewers(element, name) {
  return name === "open" && element.nodeName === "DETAILS";
}

// Runs `work` now and then every `milliseconds` until `signal` ends it: never twice at once, and not while the page is
// hidden.
export async function repeatedly(milliseconds, signal, work) {
  while (!signal.aborted) {
    await looked(signal);
    if (!signal.aborted) await work();
    await pause(milliseconds, signal);
  }
}

// Until the page is visible, or it is over.
function looked(signal) {
  return new Promise((resolve) => {
    const over = new AbortController();
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      over.abort();
      resolve();
    };
    document.addEventListener("visibilitychange", look, { signal: over.signal });
    signal.addEventListener("abort", look, { signal: over.signal });
    look();
  });
}

// `work`, one after the other: an answer from before a change never comes after one from behind it.
export function inTurn(work) {
  let last = Promise.resolve();
  return () => (last = last.then(work, work));
}

export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
