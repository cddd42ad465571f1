// The audit of the last hour, on request: it reads every task of it.

import { el } from "../../parts/elements.js";
import { instant } from "../../parts/instants.js";
import { show } from "../../parts/refresh.js";
import { link } from "../../parts/router.js";
import { call } from "../../parts/service.js";
import { problem } from "../../parts/states.js";
import { table } from "../../parts/table.js";

const HOUR_MS = 3_600_000;
const FINDINGS_SHOWN = 100;

// `now()` is the service's last instant, nothing where the viewer may not see the wheel, nor audit it.
export function auditPart(now, signal) {
  const result = el("div", { role: "status" });
  let isAtWork = false;
  const begin = async () => {
    if (isAtWork) return;
    isAtWork = true;
    await audited(now(), signal, result);
    isAtWork = false;
  };
  return el(
    "section",
    { "aria-labelledby": "audit" },
    el("h2", { id: "audit" }, "Audit"),
    el("p", { class: "quiet" }, "Looks for inconsistent tasks among those of the last hour. It reads every one of them, and writes nothing."),
    el("button", { type: "button", on: { click: begin } }, "Audit the last hour"),
    result,
  );
}

async function audited(now, signal, result) {
  show(result, el("p", {}, "Looking …"));
  const seen = { seconds: 0, items: 0, findings: [] };
  const to = now ? Date.parse(now) - (Date.parse(now) % 1000) : null; // of whole seconds, as the audit is
  let asked = to === null ? {} : { from: new Date(to - HOUR_MS).toISOString(), to: new Date(to).toISOString() };
  try {
    do {
      const { members } = await call("GET", ["audit"], { query: asked, signal });
      seen.seconds += members.checked.seconds;
      seen.items += members.checked.items;
      seen.findings.push(...members.findings);
      asked = { from: members.from, to: members.to, cursor: members.cursor };
      show(result, el("p", {}, `Looking … ${looked(seen)}`));
    } while (asked.cursor !== null && seen.findings.length < FINDINGS_SHOWN);
    show(result, outcome(seen, asked));
  } catch (error) {
    if (!signal.aborted) show(result, problem(error));
  }
}

function looked({ seconds, items }) {
  return `${items.toLocaleString("en")} items in ${seconds.toLocaleString("en")} seconds`;
}

function outcome(seen, { from, to, cursor }) {
  const { findings } = seen;
  const range = el("p", { class: "quiet" }, `${looked(seen)}, `, instant(from), " to ", instant(to), ".");
  if (findings.length === 0) return [el("p", {}, "Nothing found: every task is consistent."), range];
  const said = `${findings.length}${cursor === null ? "" : " and perhaps more"} found.`;
  return [el("p", { class: "problem" }, said), range, findingsTable(findings)];
}

function findingsTable(findings) {
  const columns = [
    ["Wrong", ({ wrong }) => el("code", {}, wrong)],
    ["What it is", ({ detail }) => detail],
    ["Task", ({ task_id: id }) => (id ? el("a", { class: "mono", href: link(["tasks", id]) }, id) : "–")],
    ["Business", ({ biz_type: name }) => (name ? el("a", { href: link(["businesses", name]) }, name) : "–")],
    ["At", ({ at, attribute }) => el("code", {}, [at, attribute].filter(Boolean).join(" · "))],
  ];
  return table("Findings", columns, findings);
}
