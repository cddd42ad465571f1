// Makes the runs of a timer in a past range that were not made, as an operation.

import { el, fill } from "../../parts/elements.js";
import { box, form, instantField, text } from "../../parts/form.js";
import { viewersZone } from "../../parts/instants.js";
import { typedNumber } from "../../parts/numbers.js";
import { told } from "../../parts/outcomes.js";
import { go, link } from "../../parts/router.js";
import { call } from "../../parts/service.js";
import { loading } from "../../parts/states.js";

const PER_SECOND = 10;

export async function timerBackfillPage({ place, parameters: { id }, signal }) {
  fill(place, el("h1", {}, "Backfill"), loading());
  const path = ["timers", id];
  const { members: timer } = await call("GET", path, { signal });
  const fields = [
    el("p", {}, "Calls the runs of this range that were missed, skipped, or due while the timer was disabled or before it was made: now, each with its own instant. Runs that were made are left alone."),
    el(
      "div",
      { class: "filters" },
      instantField("from", "From", null, { hint: `in ${viewersZone()}, your zone` }),
      instantField("to", "Up to, without it", null, { hint: "not in the future" }),
      text("runs_per_second", "Runs a second, at most", `${PER_SECOND}`, { inputmode: "numeric" }),
    ),
    box("dry_run", "Only count them", true),
  ];
  const begin = async ({ from, to, runs_per_second: pace, dry_run }) => {
    const body = { from, to, dry_run, ...(pace && { runs_per_second: typedNumber(pace) }) };
    const { members } = await call("POST", [...path, "backfill"], { body });
    told(dry_run ? "The runs are counted." : `The backfill of ${timer.name} is begun.`);
    if (!signal.aborted) go(["operations", members.operation_id]);
  };
  const also = [el("a", { class: "button", href: link(path) }, "Back")];
  fill(place, el("h1", {}, `Backfill ${timer.name}`), form(fields, "Begin", begin, { also, "aria-label": "Backfill" }));
}
