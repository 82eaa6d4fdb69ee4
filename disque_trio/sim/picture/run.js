"use strict";
// Unpacks the data of the run, and describes rows in words.

const NONE = -1;
const CLUSTER = -1;
const EVERYTHING = -2; // besides CLUSTER, what can be chosen instead of a job
// In the order of `job_states.JobState`.
const STATES = ["none", "dummy", "waiting", "held", "queued", "dead", "told", "acked"];
const STATE_WORDS = [
  "no record",
  "dummy ack",
  "being copied",
  "held",
  "queued",
  "dead",
  "acked (told)",
  "acked",
];
const DUMMY = 1;
const WAITING = 2;
const HELD = 3;
const QUEUED = 4;
const DEAD = 5;
const TOLD = 6;
const ACKED = 7;
const isCopy = (state) => Number(state > DUMMY);

const LINK_FAULTS = new Set(["cut", "clog", "drop", "half-open", "delay"]);
const ENDINGS = new Set(["heal", "release", "unrule", "half-open.end"]);
const LINK_KINDS = new Set(["cut", "clog", "rule", "half-open", "delay", ...ENDINGS]);

const run = unpack(JSON.parse(document.getElementById("run").textContent));

function unpack(data) {
  const raw = { ...data, ...data.run };
  const rows = raw.rows;
  const count = rows.time.length;
  const time = new Float64Array(count);
  let now = 0;
  for (let i = 0; i < count; i++) time[i] = now += rows.time[i];
  const mate = Int32Array.from(rows.mate, (back, i) => (back ? i - back : NONE));
  const ofJob = raw.jobs.map(() => []);
  rows.job.forEach((job, i) => {
    if (job !== NONE) ofJob[job].push(i);
  });
  for (let n = 0; n < raw.shared.length; n += 2) ofJob[raw.shared[n + 1]].push(raw.shared[n]);
  if (raw.shared.length) for (const own of ofJob) own.sort((a, b) => a - b);
  const lifelines = [...raw.nodes, ...raw.agents];
  const made = { ...raw, ...rows, count, time, mate, ofJob, lifelines };
  made.start = Math.min(0, count ? time[0] : 0);
  made.end = Math.max(raw.end, made.start + 1);
  made.tellsDeliveries = raw.words.includes("get.deliver"); // rows of live nodes do not
  made.isRepeat = new Set(raw.repeats.map((repeat) => repeat[1]));
  made.world = [];
  for (let i = 0; i < count; i++) {
    if (rows.job[i] === NONE && isWorld(made, i) && !isSameFault(made, i)) made.world.push(i);
  }
  return made;
}

// A fault of many links counts as one event, though each link has a row.
function isSameFault(data, i) {
  const before = data.world.at(-1);
  return (
    before !== undefined &&
    LINK_KINDS.has(data.words[data.kind[i]]) &&
    data.kind[before] === data.kind[i] &&
    data.time[before] === data.time[i]
  );
}

function faultWords(i) {
  const kind = kindOf(i);
  const [begun, ended] = [1, 2].map((side) =>
    run.bars.filter((bar) => bar[side] === run.time[i] && bar[2] > bar[1]),
  );
  const told = (ENDINGS.has(kind) ? ended : begun)
    .filter((bar) => LINK_FAULTS.has(bar[0]))
    .map((bar) => `${bar[0]} ${bar[3]}`);
  return `${ENDINGS.has(kind) ? "over: " : ""}${told.join(", ") || `${kind} ${lifelineOf(i)} ${peerOf(i)}`}`;
}

function isWorld(data, i) {
  const kind = data.words[data.kind[i]];
  return !["send", "recv", "lost"].includes(kind) && data.lifeline[i] < data.nodes.length;
}

const kindOf = (i) => run.words[run.kind[i]];
const causeOf = (i) => run.words[run.cause[i]];
const detailOf = (i) => run.words[run.detail[i]];
const lifelineOf = (i) => run.lifelines[run.lifeline[i]] ?? "";
const peerOf = (i) => run.lifelines[run.peer[i]] ?? "";
const isMessage = (i) => ["send", "recv", "lost"].includes(kindOf(i));
const isNode = (lifeline) => lifeline >= 0 && lifeline < run.nodes.length;
const short = (job) => (job >= 0 ? `J${job + 1}` : job === CLUSTER ? "cluster" : "everything");

// The rows of the diagram and the slider: those of the job, and the faults during its life.
function rowsAbout(job) {
  if (job === EVERYTHING) return Array.from({ length: run.count }, (_, i) => i);
  if (job === CLUSTER) {
    return Array.from({ length: run.count }, (_, i) => i).filter((i) => run.job[i] === NONE);
  }
  const own = run.ofJob[job] ?? [];
  const moves = movesOf(job);
  const left = new Map(moves.map(([, lifeline, , after]) => [lifeline, after]));
  const isOpen = [...left.values()].some((state) => state);
  const first = own[0];
  const last = isOpen ? run.count : Math.max(own.at(-1), moves.at(-1)?.[0] ?? 0);
  return [...own, ...run.world.filter((i) => i > first && i <= last)].sort((a, b) => a - b);
}

function seconds(time, digits = 3) {
  return (time / 1e6).toFixed(digits);
}

function length(micros) {
  if (micros >= 1e6) return `${+(micros / 1e6).toPrecision(3)} s`;
  return micros >= 1000 ? `${+(micros / 1000).toPrecision(3)} ms` : `${micros} µs`;
}

// A row as a sentence.
function say(i) {
  const [kind, cause, lifeline, peer, detail] = [
    kindOf(i),
    causeOf(i),
    lifelineOf(i),
    peerOf(i),
    detailOf(i),
  ];
  const job = run.job[i] === NONE ? "" : ` ${short(run.job[i])}`;
  const why = cause ? ` (${cause})` : "";
  const more = detail ? ` — ${detail}` : "";
  switch (kind) {
    case "send":
      return `${lifeline} sends ${cause.toUpperCase()}${job} to ${peer}${more}`;
    case "recv":
      return `${lifeline} receives ${cause.toUpperCase()}${job} from ${peer}${more}`;
    case "lost":
      return `${cause.toUpperCase()}${job} from ${lifeline} to ${peer} is lost${more}`;
    case "hold":
      return `${lifeline} has a record of${job}${why}`;
    case "drop":
      return `${lifeline} drops${job}${why}`;
    case "queue":
      return `${lifeline} queues${job}${why}`;
    case "unqueue":
      return `${lifeline} takes${job} out of the queue${why}`;
    case "serve":
      return `${lifeline} serves${job} to ${peer}`;
    case "give":
      return `${lifeline} gives${job} to ${peer}`;
    case "dead":
      return `${lifeline} has${job} as dead from now on${why}${more}`;
    case "redrive":
      return `${lifeline} has${job} as redriven from now on${why}${more}`;
    case "acked":
      return `${lifeline} marks${job} acknowledged${why}`;
    case "get.deliver":
      return `${lifeline} has${job} in hand, from ${peer}`;
    default:
      return LINK_KINDS.has(kind)
        ? faultWords(i)
        : (command(i) ?? `${[lifeline, kind, peer].filter(Boolean).join(" ")}${job}${why}${more}`);
  }
}

const COMMANDS = {
  add: "ADDJOB",
  ack: "ACKJOB",
  fastack: "FASTACK",
  nack: "NACK",
  working: "WORKING",
  deljob: "DELJOB",
  enqueue: "ENQUEUE",
  dequeue: "DEQUEUE",
  release: "RELEASE",
  wait: "WAITJOB",
  purge: "PURGE",
  "purge-dead": "PURGE DEAD",
  redrive: "REDRIVE",
};

function command(i) {
  const [name, outcome] = kindOf(i).split(".");
  if (!(name in COMMANDS)) return null;
  const job = run.job[i] === NONE ? "" : ` ${short(run.job[i])}`;
  const more = [causeOf(i), detailOf(i)].filter(Boolean).join(" ");
  const said =
    outcome === "invoke"
      ? `${lifelineOf(i)} asks ${peerOf(i)}: ${COMMANDS[name]}${job}`
      : `${lifelineOf(i)} has the outcome of ${COMMANDS[name]}${job}: ${outcome}`;
  return more ? `${said} — ${more}` : said;
}

// Elements. `properties` are attributes, or handlers where the value is a function.
function element(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

function shape(tag, properties = {}, ...children) {
  return fill(document.createElementNS($("namespace").namespaceURI, tag), properties, children);
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name === "style") node.style.cssText = value ?? ""; // the attribute may be forbidden
    else if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const $ = (id) => document.getElementById(id);
const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
