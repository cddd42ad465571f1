// A part of a page that is asked for again and again. What was last answered stays while the service
// fails, with what went wrong above it.

import { el, fill } from "./elements.js";
import { show } from "./refresh.js";
import { loading, problem } from "./states.js";

export class Live {
  // `ask` gets the answer, `draw` makes elements of it.
  constructor(ask, draw) {
    this.ask = ask;
    this.draw = draw;
    this.trouble = el("div");
    this.content = el("div", {}, loading());
    this.place = el("div", {}, this.trouble, this.content);
    this.answer = null;
    this.failure = null; // what the last time went wrong
  }

  async refresh(signal) {
    try {
      this.answer = await this.ask(signal);
      if (signal.aborted) return;
      show(this.content, this.draw(this.answer));
      fill(this.trouble);
      this.failure = null;
    } catch (error) {
      if (signal.aborted) return;
      this.failure = error;
      show(this.trouble, problem(error));
      if (this.answer === null) fill(this.content);
    }
  }
}
