// What can be done with a timer, each after the viewer has agreed, and never twice at once.

import { el } from "../../parts/elements.js";
import { maker } from "../../parts/making.js";
import { once } from "../../parts/once.js";
import { confirmed } from "../../parts/outcomes.js";
import { go, link } from "../../parts/router.js";
import { call } from "../../parts/service.js";

export class Actions {
  constructor(path, signal, refresh) {
    this.path = path;
    this.signal = signal;
    this.refresh = refresh;
    this.ask = once(confirmed);
  }

  buttons({ name, biz_type, enabled }, etag) {
    const button = (verb, doing, danger) => el("button", { type: "button", class: danger && "danger", on: { click: () => this.do(doing) } }, verb);
    return el(
      "div",
      { class: "buttons" },
      el("a", { class: "button", href: link([...this.path, "edit"]) }, "Edit"),
      enabled ? button("Disable", this.disabling(name, etag)) : button("Enable", this.enabling(name, etag)),
      button("Run now", this.running(name)),
      button("Delete", this.deleting(name, biz_type, etag), true),
    );
  }

  async do([question, work]) {
    await this.ask(question, work);
    await this.refresh();
  }

  enabling(name, etag) {
    const text = "From now on it is called by its schedule. What lay between is not made up for.";
    return [{ title: `Enable ${name}?`, text, verb: "Enable" }, () => this.set("enable", etag, `${name} is enabled.`)];
  }

  disabling(name, etag) {
    const text = "Nothing of it is called until it is enabled again: runs that are planned, and those that wait for another attempt, are cancelled when they fall due. A call that is under way is not stopped.";
    return [{ title: `Disable ${name}?`, text, verb: "Disable" }, () => this.set("disable", etag, `${name} is disabled.`)];
  }

  running(name) {
    const text = "Makes one call of it at once, whether it is enabled or not. It is no occurrence, and is not counted as one.";
    const work = async () => {
      const { members } = await maker([...this.path, "run"])();
      return [`A run of ${name} is made: `, el("a", { href: link(["tasks", members.task_id]) }, members.task_id)];
    };
    return [{ title: `Run ${name} now?`, text, verb: "Run now" }, work];
  }

  deleting(name, biz_type, etag) {
    const text = "The timer and its counters are gone at once, and cannot be brought back. Runs that are planned are cancelled when they fall due; those that have been can still be read as tasks.";
    const work = async () => {
      await call("DELETE", this.path, { headers: { "if-match": etag } });
      if (!this.signal.aborted) go(["timers"], { biz_type });
      return `${name} is deleted.`;
    };
    return [{ title: `Delete ${name}?`, text, verb: "Delete", danger: true }, work];
  }

  async set(verb, etag, outcome) {
    await call("POST", [...this.path, verb], { headers: { "if-match": etag } });
    return outcome;
  }
}
