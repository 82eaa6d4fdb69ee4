// The page: puts its parts together, and hears the keyboard.

import { page, run } from "./data.js";
import { buildHead } from "./head.js";
import { listed, showJobs } from "./jobs.js";
import { buildOverview, paintTracks, pointTracks, signed, valueAt } from "./overview.js";
import { followSystem, toggleTheme } from "./theme.js";
import { Moment } from "./timeline/moment.js";
import { CLUSTER } from "./timeline/run.js";
import { Timeline } from "./timeline/timeline.js";

const $ = (id) => document.getElementById(id);

followSystem();
const timeline = new Timeline($("timeline"), run);
new Moment($("moment"), timeline, clockWords);

function clockWords(name, time) {
  const wall = page.clocks[name] ? valueAt(page.clocks[name], time, 1) : 0;
  return wall ? `, wall clock ${signed(wall)} ms` : "";
}

// Shows a job where something is wrong with it, else from its beginning.
function choose(job) {
  timeline.choose(job);
  const repeat = run.repeats.find(([of]) => of === job);
  const finding = page.head.findings.find(([, id]) => job >= 0 && id === run.jobs[job][0]);
  if (finding) timeline.goToTime(finding[2]);
  else if (repeat) timeline.goTo(repeat[1]);
}

function list() {
  showJobs($("jobs"), $("search").value, timeline.view.job, choose);
}

function nextJob(by) {
  const at = listed.findIndex(({ job }) => job === timeline.view.job);
  const next = listed[Math.max(0, Math.min(at + by, listed.length - 1))];
  if (next) choose(next.job);
  document.querySelector("#jobs [aria-current='true']")?.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  " ": () => timeline.player.play(),
  n: () => nextJob(1),
  p: () => nextJob(-1),
  d: toggleTheme,
  "/": () => $("search").focus(),
};

function onKey(event) {
  const { key, target } = event;
  const isTyping = target.id === "search";
  if (isTyping && key === "Escape") target.blur();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === " " && target.tagName === "BUTTON") return;
  if (key in KEYS) KEYS[key]();
  else if (!timeline.press(event)) return;
  event.preventDefault();
}

buildHead($("head"), (job, time) => {
  choose(job);
  timeline.goToTime(time);
});
buildOverview($("faults"), $("health"), (time) => timeline.goToTime(time));
timeline.addEventListener("choose", list);
timeline.addEventListener("at", ({ detail: row }) => {
  pointTracks(timeline.view.rows, row === undefined ? run.start : run.time[row]);
});
$("search").addEventListener("input", list);
document.addEventListener("keydown", onKey);
addEventListener("resize", paintTracks);
choose(listed.length ? listed[0].job : CLUSTER);
paintTracks();
