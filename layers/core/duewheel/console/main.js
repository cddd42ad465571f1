// Begins the console: lets the viewer in, then shows the page that the address means.

import { entered, isShutOut } from "./access.js";
import { el, fill } from "./parts/elements.js";
import { findBox, onSlash } from "./parts/find_box.js";
import { Router } from "./parts/router.js";
import { onRefusedAccess } from "./parts/service.js";
import { empty, problem } from "./parts/states.js";

const PAGES = {
  overview: page("overview/overview", "overviewPage"),
  wheel: page("wheel/wheel", "wheelPage"),
  tasks: page("task/tasks", "tasksPage"),
  "tasks/new": page("task/new_task", "newTaskPage"),
  "tasks/:id": page("task/task", "taskPage"),
  timers: page("timer/timers", "timersPage"),
  "timers/new": page("timer/timer_form", "newTimerPage"),
  "timers/:id": page("timer/timer", "timerPage"),
  "timers/:id/edit": page("timer/timer_form", "editTimerPage"),
  "timers/:id/runs": page("timer/timer_runs", "timerRunsPage"),
  operations: page("operation/operations", "operationsPage"),
  "operations/:id": page("operation/operation", "operationPage"),
  businesses: page("business/businesses", "businessesPage"),
  "businesses/:name": page("business/business", "businessPage"),
  "businesses/:name/dead": page("business/business_dead", "businessDeadPage"),
  "businesses/:name/edit": page("business/business_form", "businessFormPage"),
  find: page("find/find", "findPage"),
};

// Its module comes when the page is first opened: each file is a request, and a run of a function. After that the page
// is shown at once.
function page(file, name) {
  let module = null;
  return async (opened) => {
    module ??= await import(`./pages/${file}.js`);
    if (!opened.signal.aborted) await module[name](opened); // or another page is shown by now
  };
}

const main = document.getElementById("main");
const corner = document.getElementById("access");
const finding = document.getElementById("finding");
const router = new Router(main, PAGES, unknownPage, failedPage);

function failedPage(place, error) {
  fill(place, place.querySelector("h1") ?? el("h1", {}, "This page cannot be shown"), problem(error));
}

function unknownPage({ place }) {
  fill(place, el("h1", {}, "There is no such page"), empty("The address names none of the console's pages.", el("p", {}, el("a", { href: "#/" }, "To the first page"))));
}

async function begin() {
  onRefusedAccess(() => {}); // the way in sees for itself
  router.close();
  finding.replaceChildren();
  await entered(main, corner);
  findBox(finding);
  onRefusedAccess(check);
  await router.start();
}

// A key that is no longer good leads back to the way in; a single call that is not for this caller
// does not: its page shows that.
async function check() {
  onRefusedAccess(() => {});
  if (await isShutOut()) await begin();
  else onRefusedAccess(check);
}

document.addEventListener("keydown", onSlash);
await begin();
