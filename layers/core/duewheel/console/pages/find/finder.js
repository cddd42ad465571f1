// Looks for what a text may name. No more than 25 requests, unless the viewer asks to look for the key in more businesses.

import { call, Problem } from "../../parts/service.js";

const LISTED = 100;
const BUSINESSES = 10; // in which a key is looked for at once, by two requests each
const SHOWN = 5; // of a prefix, in each business
const TASK_ID = /^[A-Za-z0-9_-]{24,}$/;
const TIMER_ID = /^[1-9][0-9]{0,15}$/;
const KEY = /^[A-Za-z0-9._:~-]{1,128}$/;
const BUSINESS = /^[a-z0-9][a-z0-9._-]{0,62}$/;
const NAMES_NOTHING = new Set(["unknown-task", "malformed-task-id", "unknown-timer", "unknown-business", "not-permitted"]);

export class Finder {
  constructor(text, business, signal) {
    this.text = text;
    this.signal = signal;
    const [, named, key] = /^([^/\s]+)[/\s]+(\S+)$/.exec(text) ?? [null, null, text];
    this.key = KEY.test(key) && (named === null || BUSINESS.test(named)) ? key : null;
    this.named = named;
    this.waiting = [named ?? business].filter(Boolean); // the businesses in which the key is to be looked for
    this.cursor = null;
    [this.tasks, this.timers, this.businesses, this.failures, this.searched, this.moreTimers] = [[], [], [], [], [], false];
  }

  get left() {
    return this.key !== null && (this.waiting.length > 0 || this.cursor !== null);
  }

  // The page of a task or timer whose id it is by its form: one request, and none beside it.
  async byItsForm() {
    if (TASK_ID.test(this.text)) {
      const task = await this.read("Tasks", ["tasks", this.text]);
      if (task !== null) return [["tasks", task.task_id]];
    }
    return null;
  }

  byName() {
    if (this.named !== null && this.key !== null) return [];
    return [
      () => this.ofTimerId(),
      () => this.ofTimerName(),
    ];
  }

  async keysOfFirst() {
    if (this.named === null || this.key === null) await this.listBusinesses();
    return this.keysOfMore();
  }

  // Work for the next businesses.
  keysOfMore() {
    if (this.key === null) return [];
    const next = this.waiting.splice(0, BUSINESSES);
    if (next.length > 0) return next.map((business) => () => this.ofKey(business));
    return this.cursor === null ? [] : [async () => { await this.listBusinesses(); for (const one of this.keysOfMore()) await one(); }];
  }

  async listBusinesses() {
    const page = await this.read("Businesses", ["businesses"], { limit: LISTED, cursor: this.cursor });
    this.cursor = page?.cursor ?? null;
    const names = (page?.businesses ?? []).map(({ biz_type: name }) => name);
    this.businesses.push(...names.filter((name) => name.includes(this.text)));
    this.waiting.push(...names.filter((name) => !this.waiting.includes(name) && !this.searched.includes(name)));
    if (this.cursor !== null && BUSINESS.test(this.text) && !names.includes(this.text)) await this.unlisted();
  }

  // One that is named in full may come later in the list.
  async unlisted() {
    if (await this.read("Businesses", ["businesses", this.text]) !== null && !this.businesses.includes(this.text)) this.businesses.push(this.text);
  }

  async ofTimerId() {
    const timer = TIMER_ID.test(this.text) && await this.read("Timers", ["timers", this.text]);
    if (timer) this.timers.push(timer);
  }

  async ofTimerName() {
    const page = await this.read("Timers", ["timers"], { name_prefix: this.text, limit: SHOWN });
    this.timers.push(...(page?.timers ?? []));
    this.moreTimers = Boolean(page?.cursor);
  }

  // The live tasks under it, and the ended one that has it.
  async ofKey(business) {
    const path = ["businesses", business, "tasks"];
    this.searched.push(business);
    const page = await this.read("Tasks", path, { key_prefix: this.key, limit: SHOWN });
    const live = page?.tasks ?? [];
    const ended = live.some(({ key }) => key === this.key) ? null : await this.read("Tasks", [...path, this.key]);
    this.tasks.push(...live, ...(ended === null ? [] : [ended]));
  }

  // null where nothing has the name; what else goes wrong is said once for each kind.
  async read(what, path, query = {}) {
    try {
      return (await call("GET", path, { query, signal: this.signal })).members;
    } catch (error) {
      if (this.signal.aborted) throw error;
      const isExpected = error instanceof Problem && (NAMES_NOTHING.has(error.type) || error.type === "invalid-field");
      if (!isExpected && !this.failures.some((failure) => failure.what === what)) this.failures.push({ what, error });
      return null;
    }
  }

  // The address of the one thing that is found, where nothing else can be.
  onlyOne() {
    if (this.left || this.moreTimers || this.failures.length > 0) return null;
    const all = [
      ...this.tasks.map(({ task_id: id }) => [["tasks", id]]),
      ...this.timers.map(({ timer_id: id }) => [["timers", id]]),
      ...this.businesses.map((name) => [["businesses", name]]),
    ];
    return all.length === 1 ? all[0] : null;
  }
}
