// What is found by a text: a task by its id or key, tasks under a key prefix, timers by id or name, businesses.

import { el, fill } from "../../parts/elements.js";
import { fewAtOnce } from "../../parts/few.js";
import { icon } from "../../parts/icons.js";
import { instant } from "../../parts/instants.js";
import { refusalText } from "../../parts/outcomes.js";
import { show } from "../../parts/refresh.js";
import { link } from "../../parts/router.js";
import { empty } from "../../parts/states.js";
import { badge } from "../../parts/table.js";
import { statusOf } from "../task/task_list.js";
import { Finder } from "./finder.js";

const AT_ONCE = 4;

export async function findPage({ place, query, signal }) {
  const text = (query.q ?? "").trim();
  const title = el("h1", {}, "Find", text !== "" && [" ", el("span", { class: "mono" }, text)]);
  const results = el("div", { "aria-live": "polite" });
  fill(place, title, results);
  if (text === "") return fill(results, empty("Type what you look for into the box above.", hint()));
  const finder = new Finder(text, query.biz_type, signal);
  const look = async (asked) => {
    const draw = (isAtWork) => !signal.aborted && show(results, found(finder, isAtWork, () => look(finder.keysOfMore())));
    draw(true);
    await fewAtOnce(AT_ONCE, asked, () => signal.aborted, async (one) => {
      await one();
      draw(true);
    });
    draw(false);
  };
  show(results, found(finder, true));
  const direct = await finder.byItsForm();
  if (direct === null) await look([...finder.byName(), ...(await finder.keysOfFirst())]);
  const only = direct ?? finder.onlyOne();
  if (only !== null && !signal.aborted) location.replace(link(...only)); // Back leads to where the search began
}

function found(finder, isAtWork, more) {
  const { tasks, timers, businesses, failures, searched, left } = finder;
  const many = tasks.length + timers.length + businesses.length;
  return [
    isAtWork && el("p", { class: "quiet", "aria-busy": "true", "data-key": "busy" }, "Looking …"),
    group("Tasks", tasks, taskLine),
    group("Timers", timers, timerLine),
    finder.moreTimers && el("p", { "data-key": "timers" }, el("a", { href: link(["timers"], { name_prefix: finder.text }) }, "All timers whose names begin so")),
    group("Businesses", businesses, businessLine),
    !isAtWork && many === 0 && el("div", { "data-key": "none" }, empty("Nothing is found by that name.", hint())),
    failures.map(({ what, error }) => el("p", { class: "problem", "data-key": what }, `${what}: ${refusalText(error)}`)),
    !isAtWork && searched.length > 0 && el("p", { class: "quiet", "data-key": "searched" }, "Keys were looked for in ", listed(searched), "."),
    !isAtWork && left && el("button", { type: "button", "data-key": "more", on: { click: more } }, "Look for the key in more businesses"),
  ];
}

function group(name, things, line) {
  if (things.length === 0) return null;
  return el("section", { "aria-label": name, "data-key": name }, el("h2", {}, name), el("ul", { class: "results" }, things.map(line)));
}

function taskLine(task) {
  return line(task.task_id, "task", link(["tasks", task.task_id]), el("span", { class: "mono" }, task.key ?? task.task_id), [statusOf(task), task.biz_type, ["due ", instant(task.due_at)]]);
}

function timerLine(timer) {
  return line(timer.timer_id, "timer", link(["timers", timer.timer_id]), timer.name, [badge(timer.state), timer.biz_type, el("code", {}, timer.timer_id)]);
}

function businessLine(name) {
  return line(name, "business", link(["businesses", name]), name, []);
}

function line(key, kind, href, name, more) {
  return el("li", { "data-key": key }, icon(kind), el("a", { href }, name), more.map((one) => el("span", { class: "quiet" }, one)));
}

function listed(names) {
  return names.map((name, index) => [index > 0 && ", ", el("code", {}, name)]);
}

function hint() {
  return el("p", {}, "An id of a task or a timer, a key (or its beginning, of live tasks), the beginning of a timer's name, or part of a business's name. ", el("code", {}, "business/key"), " looks for the key in this business alone.");
}
