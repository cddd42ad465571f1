// Begins the console: lets the viewer in, then shows the page that the address means.

import { entered } from "./access.js";
import { fill } from "./parts/elements.js";
import { Router } from "./parts/router.js";
import { problem } from "./parts/states.js";
import { businessPage } from "./pages/business.js";
import { businessesPage } from "./pages/businesses.js";
import { helpPage } from "./pages/help.js";
import { newTaskPage } from "./pages/new_task.js";
import { taskPage } from "./pages/task.js";
import { tasksPage } from "./pages/tasks.js";
import { timerPage } from "./pages/timer.js";
import { timersPage } from "./pages/timers.js";
import { wheelPage } from "./pages/wheel.js";

const PAGES = {
  wheel: wheelPage, // and whatever is no page
  tasks: tasksPage,
  "tasks/new": newTaskPage,
  "tasks/:id": taskPage,
  timers: timersPage,
  "timers/:id": timerPage,
  businesses: businessesPage,
  "businesses/:name": businessPage,
  help: helpPage,
};

const main = document.getElementById("main");
await entered(main, document.getElementById("access"));
await new Router(main, PAGES, (place, error) => fill(place, problem(error))).start();
