// Begins the console: lets the viewer in, then shows the page that the address means.

import { entered, isShutOut } from "./access.js";
import { fill } from "./parts/elements.js";
import { Router } from "./parts/router.js";
import { onRefusedAccess } from "./parts/service.js";
import { problem } from "./parts/states.js";
import { businessPage } from "./pages/business.js";
import { businessDeadPage } from "./pages/business_dead.js";
import { businessFormPage } from "./pages/business_form.js";
import { businessesPage } from "./pages/businesses.js";
import { helpPage } from "./pages/help.js";
import { newTaskPage } from "./pages/new_task.js";
import { taskPage } from "./pages/task.js";
import { tasksPage } from "./pages/tasks.js";
import { timerPage } from "./pages/timer.js";
import { editTimerPage, newTimerPage } from "./pages/timer_form.js";
import { timerRunsPage } from "./pages/timer_runs.js";
import { timersPage } from "./pages/timers.js";
import { wheelPage } from "./pages/wheel.js";

const PAGES = {
  wheel: wheelPage, // and whatever is no page
  tasks: tasksPage,
  "tasks/new": newTaskPage,
  "tasks/:id": taskPage,
  timers: timersPage,
  "timers/new": newTimerPage,
  "timers/:id": timerPage,
  "timers/:id/edit": editTimerPage,
  "timers/:id/runs": timerRunsPage,
  businesses: businessesPage,
  "businesses/:name": businessPage,
  "businesses/:name/dead": businessDeadPage,
  "businesses/:name/edit": businessFormPage,
  help: helpPage,
};

const main = document.getElementById("main");
const corner = document.getElementById("access");
const router = new Router(main, PAGES, (place, error) => fill(place, problem(error)));

async function begin() {
  onRefusedAccess(() => {}); // the way in sees for itself
  router.close();
  await entered(main, corner);
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

await begin();
