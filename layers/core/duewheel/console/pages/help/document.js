// A document of this release, as the repository has it.

import { el, fill } from "../../parts/elements.js";
import { link } from "../../parts/router.js";
import { document as documentText } from "../../parts/service.js";
import { loading } from "../../parts/states.js";
import { markdown } from "./markdown.js";

const FOLDERS = new Set(["", "guides"]); // those whose documents are here

export async function documentPage({ place, parameters: { folder = "", name }, query: { at }, signal }) {
  const path = [folder, name].filter(Boolean).join("/");
  fill(place, el("h1", {}, "Help"), loading());
  const text = await documentText(`${path}.md`, signal);
  if (signal.aborted) return;
  const hrefOf = (target) => hrefFrom(path, target);
  const back = el("p", {}, el("a", { href: link(["help"]) }, "Help"), " / ", el("span", { class: "mono" }, `docs/${path}.md`));
  fill(place, back, el("article", { class: "document" }, markdown(text, hrefOf)));
  const heading = at && [...place.querySelectorAll("[data-at]")].find(({ dataset }) => dataset.at === at);
  if (!heading) return;
  heading.scrollIntoView();
  heading.focus();
}

// "docs/guides/cron.md#heading" → its page here.
export function documentHref(path) {
  const [file, at] = path.split("#");
  return link(["help", ...file.replace(/^docs\//, "").replace(/\.md$/, "").split("/")], { at });
}

// Of a link in the document at `path`; null where it leads to what is not here.
function hrefFrom(path, target) {
  if (/^https?:/.test(target)) return target;
  const [file, at = ""] = target.split("#");
  const url = new URL(file, `https://docs.invalid/docs/${path}.md`); // of no file, the document itself
  const [, folder = "", name] = /^\/docs\/(?:(.*)\/)?([^/]+)\.md$/.exec(url.pathname) ?? [];
  return name !== undefined && FOLDERS.has(folder) ? documentHref(`docs/${[folder, name].filter(Boolean).join("/")}.md#${at}`) : null;
}
