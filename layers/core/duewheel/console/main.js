// Begins the console: lets the viewer in, then shows the page that the address means.

import { entered } from "./access.js";
import { fill } from "./parts/elements.js";
import { Router } from "./parts/router.js";
import { problem } from "./parts/states.js";
import { businessPage } from "./pages/business.js";
import { businessesPage } from "./pages/businesses.js";
import { helpPage } from "./pages/help.js";
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
  "tasks/:id": taskPage,
  timers: timersPage,
  "timers/new": newTimerPage,
  "timers/:id": timerPage,
  "timers/:id/edit": editTimerPage,
  "timers/:id/runs": timerRunsPage,
  businesses: businessesPage,
  "businesses/:name": businessPage,
  help: helpPage,
};

const main = document.getElementById("main");
await entered(main, document.getElementById("access"));
await new Router(main, PAGES, (place, error) => fill(place, problem(error))).start();
