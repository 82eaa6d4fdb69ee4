// The way of one job of the sandbox, or all that happens, as it happens.

import { redraw } from "./app.js";
import { element } from "./elements.js";
import { card } from "./parts.js";
import { CLUSTER, EVERYTHING, Run } from "./timeline/run.js";
import { short } from "./timeline/sentences.js";
import { Timeline } from "./timeline/timeline.js";
import { strip } from "./strip.js";

const REST = 1000; // milliseconds after rows could not be had

let epoch = 0;
let run = null;
let timeline = null;
let built = null; // the element that it is in
let next = 0; // the number of the next slice
let known = 0; // rows that were asked for
let isAsking = false;
let failed = null; // the answer of the topic whose rows could not be had
let wish = null; // { job, at } that is to be shown when its rows are here

export function sandboxTimeline(data, findings) {
  if (data.epoch !== epoch) begin(data.epoch);
  if (data.events > known && data !== failed && !isAsking) ask(data);
  const hasJobs = run.jobs.length > 0;
  const time = timeline?.row() === undefined ? run.end : run.time[timeline.row()];
  return card(
    "What happened",
    { note: hasJobs ? "Select a job in the table above." : "Add a job: its timeline is drawn here.", tools: choice() },
    strip(run, time, findings, (at) => timeline?.goToTime(at)),
    element("div", { key: `timeline ${epoch}`, host: build }),
  );
}

// At the time, if it is given.
export function showJob(id, at = null) {
  wish = { id, at };
  fulfil();
}

// Those of the timeline that the sandbox has no use of its own for.
const OWN = ["ArrowLeft", "Home", "End", "t", "c"];

export const keys = () => Object.fromEntries(OWN.map((key) => [key, (event) => timeline?.press(event)]));

function begin(number) {
  [epoch, run, timeline, next, known, wish] = [number, new Run(), null, 0, 0, null];
}

function build(host) {
  if (host === built) return;
  built = host;
  timeline = new Timeline(host, run);
  timeline.choose(run.jobs.length ? run.jobs.length - 1 : CLUSTER);
  timeline.goToPlace(Infinity);
  timeline.addEventListener("at", redraw);
}

async function ask(data) {
  isAsking = true;
  const mine = epoch;
  const before = run.jobs.length;
  known = data.events;
  try {
    if (!(await askAll(mine))) return;
    if (!before && run.jobs.length) showJob(run.jobs[0][0]);
    timeline?.refresh();
    fulfil();
  } catch {
    [known, failed] = [0, data];
    setTimeout(askAgain, REST);
  } finally {
    isAsking = false;
    redraw();
  }
}

// With the next answer of the topic, which comes when something changes, or after a rest.
function askAgain() {
  failed = null;
  redraw();
}

// An answer has so many rows at most. Says whether this run has all of them now.
async function askAll(mine) {
  for (;;) {
    const answer = await fetch(`/sandbox/rows/${mine}/${next}`);
    if (!answer.ok) return false;
    const told = await answer.json();
    if (told.is_gone || mine !== epoch) return false;
    for (const slice of told.slices) run.extend(slice);
    next = told.next;
    if (!told.is_more) return true;
  }
}

function fulfil() {
  if (!wish || !timeline) return;
  const job = run.jobs.findIndex(([id]) => id === wish.id);
  if (job < 0 && wish.id) return;
  timeline.choose(job < 0 ? CLUSTER : job);
  if (wish.at === null) timeline.goToPlace(Infinity);
  else timeline.goToTime(wish.at);
  wish = null;
  redraw();
}

function choice() {
  const choose = (event) => {
    timeline?.choose(Number(event.target.value));
    timeline?.goToPlace(Infinity);
    redraw();
  };
  const words = (job) => `${short(job)} ${run.jobs[job][1]}`;
  const options = [...run.jobs.keys()].slice(-200).reverse();
  return element(
    "select",
    { key: `drawn ${timeline?.view.job}`, "aria-label": "What is drawn", value: String(timeline?.view.job ?? CLUSTER), change: choose },
    element("option", { value: String(CLUSTER) }, "about no job"),
    element("option", { value: String(EVERYTHING) }, "all events"),
    options.map((job) => element("option", { key: job, value: String(job) }, words(job))),
  );
}
