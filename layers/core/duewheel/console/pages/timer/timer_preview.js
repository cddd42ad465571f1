// What the schedule in the form has ahead, looked up while it is typed.

import { changedMembers } from "../../parts/changed_members.js";
import { el, fill } from "../../parts/elements.js";
import { forgetAt, notedAt, values } from "../../parts/form.js";
import { call } from "../../parts/service.js";
import { problem } from "../../parts/states.js";
import { upcomingTable } from "../../parts/upcoming.js";
import { saidMembers, typedSchedule } from "./timer_fields.js";

const AFTER_MS = 300; // of no typing
const COUNT = 10;
const SCHEDULE = ["cron", "every_seconds", "timezone", "start_at", "end_at", "max_runs", "dst_gap", "dst_overlap", "exclude"];

export class Preview {
  // `timer` is null for one that is yet to be made.
  constructor(timer) {
    this.timer = timer;
    this.content = el("div");
    this.place = el("section", { class: "preview", "aria-live": "polite", "aria-label": "Preview" }, el("h2", {}, "Ahead"), this.content);
    this.looking = new AbortController();
  }

  follow(form, signal) {
    this.form = form;
    this.before = typedSchedule(values(form));
    form.addEventListener("input", () => this.later());
    signal.addEventListener("abort", () => this.stop());
    this.look();
  }

  later() {
    this.stop();
    this.waiting = setTimeout(() => this.look(), AFTER_MS);
  }

  stop() {
    clearTimeout(this.waiting);
    this.looking.abort(); // an earlier answer does not come over a later one
  }

  async look() {
    this.looking = new AbortController();
    const { signal } = this.looking;
    try {
      const [note, table] = await this.found(signal);
      if (!signal.aborted) this.show(note && el("p", { class: "hint" }, note), table);
    } catch (error) {
      if (!signal.aborted) this.refuse(error);
    }
  }

  async found(signal) {
    const schedule = typedSchedule(values(this.form));
    if (schedule.cron === null && schedule.every_seconds === null) return ["Type a schedule to see what it has ahead."];
    const asked = this.timer === null ? schedule : await this.asChanged(schedule, signal);
    if (asked === null) return ["What this change leaves ahead shows when it is saved."];
    const { members } = asked === "unchanged" ? await this.stands(signal) : await call("POST", ["timers", "upcoming"], { body: { ...saidMembers(asked), count: COUNT }, signal });
    const note = this.timer !== null && asked !== "unchanged" && schedule.max_runs !== null && "Occurrences that have been are not taken off here.";
    return [note, upcomingTable(members.upcoming, schedule.timezone ?? "UTC")];
  }

  stands(signal) {
    return call("GET", ["timers", this.timer.timer_id, "upcoming"], { query: { count: COUNT }, signal });
  }

  // The schedule to ask about: "unchanged", or null where a new timer's would not be the same.
  async asChanged(schedule, signal) {
    const changes = changedMembers(this.before, schedule);
    if (Object.keys(changes).length === 0) return "unchanged";
    if (schedule.cron !== null) return this.timer.dialect === "cronexpr" ? null : schedule;
    if ("every_seconds" in changes || "start_at" in changes || schedule.start_at !== null) return schedule;
    const { members } = await this.stands(signal); // it goes on counting from where it began
    const [next] = members.upcoming;
    return next === undefined ? null : { ...schedule, start_at: next };
  }

  refuse(error) {
    this.forget();
    fill(this.content, notedAt(this.form, error) === null ? problem(error) : el("p", { class: "hint" }, "There is no preview of this."));
  }

  // The service has taken the schedule, so nothing that was said of it holds, by the preview or by a refused save.
  show(...children) {
    this.forget();
    fill(this.content, children);
  }

  forget() {
    for (const name of SCHEDULE) forgetAt(this.form.querySelector(`[data-field="${name}"]`));
  }
}
