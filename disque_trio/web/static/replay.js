// Page 8: a run that was recorded or simulated, with what the judge says of it.

import { app, go, may, redraw } from "./app.js";
import { element } from "./elements.js";
import { card, code, facts, heading, sign } from "./parts.js";
import { seconds } from "./steer.js";
import { strip } from "./strip.js";
import { Moment } from "./timeline/moment.js";
import { CLUSTER, EVERYTHING, Run } from "./timeline/run.js";
import { short } from "./timeline/sentences.js";
import { Timeline } from "./timeline/timeline.js";
import { UNKNOWN, count, named, number } from "./words.js";

const JOBS = 200;
const FINDINGS = 2; // of one property
const LEVELS = { PASS: "good", FAIL: "bad" };

let state = "new"; // loading, there, or why it cannot be shown
let data = null;
let run = null;
let timeline = null;
let built = null; // the element that it is in
let moment = null;
let jobs = []; // { job, badges }, those with findings first
let wanted = "";
let shown = -1; // the place of the finding that one has gone to

export const replay = {
  name: "Replay",
  topics: () => ({}),
  view() {
    if (state === "new") load();
    if (!data) return [heading("Replay"), element("p", { class: "empty" }, state === "loading" ? "Loading the run …" : state)];
    app.press = press;
    app.help = HELP;
    const at = now();
    return [
      heading(`${data.head.scenario} · seed ${data.head.seed ?? UNKNOWN}`, `at ${seconds(at, 6)}`, ...tools()),
      verdict(),
      card("Faults", { note: "Click a moment to go there." }, strip(run, at, findings(), goToTime)),
      element("div", { class: "replay" }, jobList(), element("div", { key: "timeline", class: "card", host: build })),
      element("section", { key: "moment", class: "card", "aria-label": "The cluster at this moment", host: showMoment }),
    ];
  },
};

async function load() {
  state = "loading";
  try {
    const answer = await fetch("/replay.json");
    if (!answer.ok) throw new Error(await answer.text());
    data = await answer.json();
    run = new Run(data.causes);
    run.extend(data.run);
    jobs = listed();
    state = "there";
  } catch (error) {
    state = `Cannot show the run: ${error.message}`;
  }
  redraw();
}

function build(host) {
  if (host === built) return;
  built = host;
  const before = timeline?.view;
  timeline = new Timeline(host, run);
  timeline.addEventListener("at", redraw);
  timeline.addEventListener("choose", redraw);
  const first = findings()[0];
  if (before) {
    timeline.choose(before.job);
    timeline.goToPlace(before.place);
  } else if (first) goToFinding(first);
  else timeline.choose(jobs.length ? jobs[0].job : CLUSTER);
}

function showMoment(host) {
  if (moment?.timeline === timeline) return;
  moment = new Moment(host, timeline, clockWords);
  moment.show();
}

const now = () => {
  const row = timeline?.row();
  return row === undefined ? 0 : run.time[row];
};

const findings = () => data.head.findings.map(([property, job, at, says], place) => ({ property, job, at, says, place }));

// Jobs with violations first, then those that came more than once.
function listed() {
  const badges = run.jobs.map(() => []);
  const numbers = new Map(run.jobs.map(([id], n) => [id, n]));
  const add = (job, text, level) => {
    const own = badges[job];
    if (own && !own.some((each) => each.text === text)) own.push({ text, level });
  };
  for (const { property, job } of findings()) add(numbers.get(job), property, "bad");
  for (const [job, , , cause] of run.repeats) add(job, cause || "again", "warn");
  const rank = (n) => (badges[n].some(({ level }) => level === "bad") ? 0 : badges[n].length ? 1 : 2);
  return run.jobs.map((_, job) => ({ job, badges: badges[job] })).sort((a, b) => rank(a.job) - rank(b.job) || a.job - b.job);
}

// Moving.

const goToTime = (time) => timeline.goToTime(time);

function goToFinding({ job, at, place }) {
  shown = place;
  const found = run.jobs.findIndex(([id]) => id === job);
  timeline.choose(found < 0 ? CLUSTER : found);
  timeline.goToTime(at);
}

function nextFault() {
  const times = [...new Set(run.bars.map(([, start]) => start))].sort((a, b) => a - b);
  const time = times.find((each) => each > now()) ?? times[0];
  if (time === undefined) return;
  timeline.goToTime(time);
  if (now() < time) {
    // The job that is shown has no event then: all events have.
    timeline.choose(CLUSTER);
    timeline.goToTime(time);
  }
}

// By its place, for a job may have no event at the moment of a finding.
function nextFinding() {
  const all = findings();
  if (all.length) goToFinding(all[(shown + 1) % all.length]);
}

function nextJob(by) {
  const at = jobs.findIndex(({ job }) => job === timeline.view.job);
  const next = jobs[Math.max(0, Math.min(at + by, jobs.length - 1))];
  if (next) timeline.choose(next.job);
}

function tools() {
  const canTakeOver = may("steer") && app.hello.topics.includes("sandbox");
  return [
    element("button", { click: nextFault, title: "key f", disabled: !run.bars.length || null }, "Next fault"),
    element("button", { click: nextFinding, title: "key e", disabled: !data.head.findings.length || null }, "Next finding"),
    canTakeOver && element("button", { click: takeOver, title: "key T" }, "Take over from here"),
    element("a", { href: "/replay", target: "_blank" }, "as one page"),
  ];
}

const takeOver = () => go(`#/sandbox?at=${Math.max(0, now())}`);

// The judge.

function verdict() {
  const { head } = data;
  const word = head.ok === null ? "NOT JUDGED" : head.ok ? "PASS" : "FAIL";
  const all = findings();
  const counts = head.counts.filter(([, many]) => many).map(([name, many, note]) => `${name} ${number(many)}${note ? ` (${note})` : ""}`);
  return card(
    "Verdict",
    { id: "verdict", note: counts.join(" · ") },
    element("p", { class: `verdict ${LEVELS[word] ?? "quiet"}-text` }, LEVELS[word] && sign(LEVELS[word]), ` ${word}`),
    [...Map.groupBy(all, ({ property }) => property)].map(ofProperty),
    element("p", { class: "small" }, "again with ", element("code", {}, head.replay)),
    element("details", {}, element("summary", {}, "The plan"), facts(head.plan)),
    head.doubts.length > 0 && element("details", {}, element("summary", {}, "Not judged"), element("ul", { class: "small" }, head.doubts.map((text) => element("li", {}, text)))),
  );
}

// What was violated, what that means, and where.
function ofProperty([property, list]) {
  const meaning = data.head.properties[property] ?? data.causes[property];
  const more = list.length - FINDINGS;
  return element(
    "div",
    { key: property, class: "broken" },
    element("h3", {}, element("b", { class: "bad-text" }, property), meaning && ` ${meaning}`, list.length > 1 && element("span", { class: "quiet" }, ` · ${list.length} times`)),
    element("ul", { class: "heals" }, list.slice(0, FINDINGS).map(findingLine)),
    more > 0 && element("p", { class: "small" }, `and ${count(more, "more moment")}: Next finding goes to each`),
  );
}

function findingLine(finding) {
  const { job, at, says } = finding;
  return element(
    "li",
    { class: "finding" },
    element("button", { click: () => goToFinding(finding) }, `go to ${seconds(at)}`),
    job && element("code", { title: job }, shortOf(job)),
    element("bdi", {}, says),
  );
}

function shortOf(id) {
  const found = run.jobs.findIndex(([each]) => each === id);
  return found < 0 ? id : short(found);
}

// Jobs.

function jobList() {
  const text = wanted.trim().toLowerCase();
  const isMatch = ({ job, badges }) =>
    [short(job), run.jobs[job][0], run.jobs[job][1], ...badges.map((each) => each.text)].some((words) => String(words).toLowerCase().includes(text));
  const found = text ? jobs.filter(isMatch) : jobs;
  const input = (event) => {
    wanted = event.target.value;
    redraw();
  };
  const line = (key, job, ...children) =>
    element("li", { key }, element("button", { class: "plain", "aria-current": timeline?.view.job === job ? "true" : null, click: () => timeline.choose(job) }, children));
  return element(
    "nav",
    { class: "card picker", "aria-label": "Jobs" },
    element("input", { id: "find", type: "search", placeholder: "find a job", "aria-label": "Find a job", value: wanted, input }),
    element(
      "ol",
      {},
      found.slice(0, JOBS).map(({ job, badges }) =>
        line(job, job, element("b", {}, short(job)), " ", named(run.jobs[job][1] || UNKNOWN), badges.map(({ text: badge, level }) => element("span", { class: `badge ${level}` }, code(badge, data.head.properties[badge] ?? data.causes[badge])))),
      ),
      !text && [line("all", EVERYTHING, "all events"), line("cluster", CLUSTER, "about no job")],
    ),
    found.length > JOBS && element("p", { class: "small" }, `${found.length - JOBS} more: type to find`),
  );
}

// A trace of live nodes knows nothing of true time.
function clockWords(name, time) {
  const points = data.clocks[name];
  if (!points?.length) return "";
  let error = 0;
  for (const [at, wall] of points) if (at <= time) error = wall;
  return error ? ` · clock ${error > 0 ? "+" : ""}${error} ms` : "";
}

function press(event) {
  if (!(event.key in KEYS)) return timeline?.press(event) ?? false;
  KEYS[event.key]();
  return true;
}

const KEYS = {
  " ": () => timeline.player.play(),
  f: nextFault,
  e: nextFinding,
  j: () => nextJob(1),
  k: () => nextJob(-1),
  T: () => may("steer") && takeOver(),
};

const HELP = [
  ["← →", "previous event, next event; with Shift ten"],
  ["Home End", "first event, last event"],
  ["Space", "play and stop"],
  ["f e", "next fault, next finding"],
  ["j k", "next job, previous job"],
  ["t c", "true time scale; only events that can have caused the selected one"],
  ["+ -", "wider, narrower"],
  ["T", "take over from here, in the sandbox"],
];
