// The rows of a run: unpacked from slices (`picture/table.py`), and asked for by job and by time.

import { visible } from "./text.js";

export const NONE = -1;
export const CLUSTER = -1;
export const EVERYTHING = -2; // besides CLUSTER, what can be chosen instead of a job
// In the order of `job_states.JobState`.
export const STATES = ["none", "dummy", "waiting", "held", "queued", "dead", "told", "acked"];
export const STATE_WORDS = [
  "no record",
  "dummy ack",
  "being copied",
  "held",
  "queued",
  "dead",
  "acked (told)",
  "acked",
];
export const DUMMY = 1;
export const WAITING = 2;
export const HELD = 3;
export const QUEUED = 4;
export const DEAD = 5;
export const TOLD = 6;
export const ACKED = 7;
export const isCopy = (state) => Number(state > DUMMY);

const MESSAGES = ["send", "recv", "lost"];
const LOOKS = ["nodes", "pairs"]; // what is seen when a simulation is looked at: nothing happens
const COLUMNS = ["kind", "lifeline", "peer", "job", "cause", "detail"];
const MOVE = 5;
const FOLD = 4;
const PLANNED = { nack: "retry", "backed-off": "retry", "snooze-over": "snoozed", release: "released", redriven: "redriven", enqueue: "requeued", "enqueue-message": "requeued" };

export class Run {
  // `causes` are the meanings of the causes of duplicates. Of one job, sentences do not name it.
  constructor(causes = {}, { isOfOneJob = false } = {}) {
    this.causes = causes;
    this.isOfOneJob = isOfOneJob;
    this.count = 0;
    this.time = new Float64Array(0); // microseconds; these columns have room for more than `count`
    this.mate = new Int32Array(0);
    for (const name of COLUMNS) this[name] = new Int32Array(0);
    this.words = [];
    this.lifelines = []; // names
    this.nodes = []; // numbers of lifelines
    this.agents = [];
    this.jobs = []; // id, queue, copies wanted
    this.ofJob = []; // rows
    this.moves = []; // flat, as they come
    this.movesByJob = [];
    this.operations = []; // flat
    this.repeats = [];
    this.folded = new Map(); // by row, how many messages like it are left out before it
    this.isRepeat = new Set();
    this.explained = new Set(); // those with a cause of their own
    this.bars = []; // what, start, end, label, names of nodes, colour, whether it is of links
    this.linkRows = {}; // by kind of row about a fault of links: whether it ends the fault
    this.world = []; // rows about nodes and links, not about jobs
    this.start = 0;
    this.end = 1;
    this.tellsDeliveries = false; // rows of live nodes do not
  }

  // Takes the next slice.
  extend(slice) {
    this.#name(slice);
    const first = this.count;
    this.#unpack(slice.rows);
    this.#sort(slice, first);
    this.#move(slice.moves);
    for (const value of slice.operations) this.operations.push(value);
    for (const repeat of slice.repeats) {
      this.repeats.push(repeat);
      this.isRepeat.add(repeat[1]);
      if (repeat[3]) this.explained.add(repeat[1]);
    }
    this.bars = slice.bars;
    for (const [kind, isEnd] of slice.link_rows) this.linkRows[kind] = isEnd;
    this.start = Math.min(0, this.count ? this.time[0] : 0);
    this.end = Math.max(slice.end, this.start + 1);
    for (let i = first; i < this.count; i++) if (this.#isNews(i)) this.world.push(i);
  }

  #name({ words, nodes, agents, jobs, known_jobs: known }) {
    for (const word of words) this.words.push(visible(word));
    this.tellsDeliveries ||= words.includes("get.deliver");
    for (const name of nodes) this.nodes.push(this.lifelines.push(visible(name)) - 1);
    for (const name of agents) this.agents.push(this.lifelines.push(visible(name)) - 1);
    for (const job of jobs) {
      this.jobs.push(job);
      this.ofJob.push([]);
      this.movesByJob.push([]);
    }
    for (const [job, queue, wanted] of known) this.jobs[job] = [this.jobs[job][0], queue, wanted];
  }

  #unpack(rows) {
    const first = this.count;
    this.count += rows.time.length;
    this.#makeRoom();
    for (const name of COLUMNS) this[name].set(rows[name], first);
    let now = first ? this.time[first - 1] : 0;
    rows.time.forEach((since, n) => (this.time[first + n] = now += since));
    rows.mate.forEach((back, n) => (this.mate[first + n] = back ? first + n - back : NONE));
  }

  #makeRoom() {
    if (this.count <= this.time.length) return;
    for (const name of ["time", "mate", ...COLUMNS]) {
      const before = this[name];
      this[name] = new before.constructor(Math.max(this.count, 2 * before.length));
      this[name].set(before);
    }
  }

  // Puts rows to their jobs.
  #sort({ shared, known_rows: known }, first) {
    const unsorted = new Set();
    for (let i = first; i < this.count; i++) {
      if (this.job[i] !== NONE) this.ofJob[this.job[i]].push(i);
    }
    for (let n = 0; n < known.length; n += 2) {
      const [row, job] = [known[n], known[n + 1]];
      const before = this.job[row];
      if (before !== NONE) this.ofJob[before] = this.ofJob[before].filter((i) => i !== row);
      this.job[row] = job;
      this.ofJob[job].push(row);
      unsorted.add(job);
    }
    for (let n = 0; n < shared.length; n += 2) {
      this.ofJob[shared[n + 1]].push(shared[n]);
      unsorted.add(shared[n + 1]);
    }
    for (const job of unsorted) this.ofJob[job].sort((a, b) => a - b);
  }

  #move(moves) {
    for (let n = 0; n < moves.length; n += MOVE) {
      const [row, job, lifeline, before, after] = moves.slice(n, n + MOVE);
      this.moves.push(row, job, lifeline, before, after);
      this.movesByJob[job].push([row, lifeline, before, after]);
    }
  }

  // A fault of many links counts as one event, though each link has a row.
  #isNews(i) {
    if (this.job[i] !== NONE || this.isMessage(i) || LOOKS.includes(this.kindOf(i))) return false;
    if (this.agents.includes(this.lifeline[i])) return false;
    const before = this.world.at(-1);
    return !(
      before !== undefined &&
      this.kindOf(i) in this.linkRows &&
      this.kind[before] === this.kind[i] &&
      this.time[before] === this.time[i]
    );
  }

  kindOf(i) {
    return this.words[this.kind[i]];
  }

  causeOf(i) {
    return this.words[this.cause[i]];
  }

  // A delivery that somebody has asked for is no duplicate: in a word, why; else nothing.
  plannedBy(i) {
    if (this.explained.has(i)) return undefined;
    const own = this.ofJob[this.job[i]] ?? [];
    for (let n = own.indexOf(i) - 1; n >= 0; n--) {
      if (this.kindOf(own[n]) === "queue" && this.causeOf(own[n]) !== "import") return PLANNED[this.whyOf(own[n])];
    }
    return undefined;
  }

  // The cause in its own words: a wait that a RELEASE has begun is a snooze, and nothing has failed.
  // Nodes that have heard of the wait have a row of it as well ("postponed").
  whyOf(i) {
    const cause = this.causeOf(i);
    if (cause !== "backed-off") return cause;
    const own = this.ofJob[this.job[i]] ?? [];
    const begins = (row) => this.kindOf(row) === "postpone" && this.causeOf(row) !== "postponed";
    const wait = own.findLast((row) => row < i && begins(row));
    return wait !== undefined && this.causeOf(wait) === "release" ? "snooze-over" : cause;
  }

  detailOf(i) {
    return this.words[this.detail[i]];
  }

  lifelineOf(i) {
    return this.lifelines[this.lifeline[i]] ?? "";
  }

  peerOf(i) {
    return this.lifelines[this.peer[i]] ?? "";
  }

  isMessage(i) {
    return MESSAGES.includes(this.kindOf(i));
  }

  isNode(lifeline) {
    return this.nodes.includes(lifeline);
  }

  // Row, lifeline, state before, state after.
  movesOf(job) {
    return this.movesByJob[job] ?? [];
  }

  // The rows of the diagram and the slider: those of the job, and the faults during its life.
  rowsAbout(job) {
    return this.isOfOneJob ? this.#folded(this.#about(job)) : this.#about(job);
  }

  // A job that runs for long has its lease renewed again and again: of each run of such messages the
  // first and the last are shown.
  #folded(rows) {
    const isRenewal = (i) => this.isMessage(i) && this.causeOf(i) === "working";
    const shown = [];
    this.folded.clear();
    for (let n = 0; n < rows.length; ) {
      let end = n;
      while (end < rows.length && isRenewal(rows[end])) end++;
      const sends = rows.slice(n, end).filter((i) => this.kindOf(i) === "send");
      if (sends.length > FOLD) {
        const kept = new Set([sends[0], sends.at(-1)]);
        const ends = rows.slice(n, end).filter((i) => kept.has(i) || kept.has(this.mate[i]));
        shown.push(...ends);
        this.folded.set(sends.at(-1), sends.length - 2);
        n = end;
      } else shown.push(rows[n++]);
    }
    return shown;
  }

  #about(job) {
    const all = () => Array.from({ length: this.count }, (_, i) => i);
    if (job === EVERYTHING) return all();
    if (job === CLUSTER) return all().filter((i) => this.job[i] === NONE);
    const own = this.ofJob[job] ?? [];
    const moves = this.movesOf(job);
    const left = new Map(moves.map(([, lifeline, , after]) => [lifeline, after]));
    const isOpen = [...left.values()].some((state) => state);
    const first = own[0];
    const last = isOpen ? this.count : Math.max(own.at(-1), moves.at(-1)?.[0] ?? 0);
    return [...own, ...this.world.filter((i) => i > first && i <= last)].sort((a, b) => a - b);
  }

  // The place of the first of these rows that is later than `time`.
  firstAfter(rows, time) {
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[rows[middle]] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

// The states of all jobs on all nodes at one moment: moves are applied, or undone.
export class States {
  constructor(run) {
    this.run = run;
    this.of = new Map(); // by lifeline of a node: states, by job
    this.applied = 0;
  }

  // Until the states are those after row `last`.
  seek(last) {
    const { moves } = this.run;
    let n = this.applied;
    for (; n < moves.length && moves[n] <= last; n += MOVE) {
      this.#at(moves[n + 2])[moves[n + 1]] = moves[n + 4];
    }
    for (; n > 0 && moves[n - MOVE] > last; n -= MOVE) {
      this.#at(moves[n - MOVE + 2])[moves[n - MOVE + 1]] = moves[n - MOVE + 3];
    }
    this.applied = n;
  }

  #at(lifeline) {
    if (!this.of.has(lifeline)) this.of.set(lifeline, []);
    return this.of.get(lifeline);
  }

  state(lifeline, job) {
    return this.of.get(lifeline)?.[job] ?? 0;
  }
}
