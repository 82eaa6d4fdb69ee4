// Rows in words.

import { EVENT_WORDS } from "./words.js";

export const short = (job) => (job >= 0 ? `J${job + 1}` : job === -1 ? "cluster" : "everything");

export function seconds(time, digits = 3) {
  return (time / 1e6).toFixed(digits);
}

export function length(micros) {
  if (micros >= 1e6) return `${+(micros / 1e6).toPrecision(3)} s`;
  return micros >= 1000 ? `${+(micros / 1000).toPrecision(3)} ms` : `${micros} µs`;
}

// A row as a sentence.
export function say(run, i) {
  const [kind, cause, lifeline, peer, detail] = [
    run.kindOf(i),
    run.causeOf(i),
    run.lifelineOf(i),
    run.peerOf(i),
    run.detailOf(i),
  ];
  const name = run.job[i] < 0 || run.isOfOneJob ? "" : ` ${short(run.job[i])}`;
  const job = run.job[i] >= 0 && run.isOfOneJob ? " the job" : name;
  const whole = `${kind}.${run.whyOf(i)}`;
  const why = cause && !(whole in EVENT_WORDS) ? ` (${cause})` : "";
  const more = detail ? ` — ${detail}` : "";
  if (kind in EVENT_WORDS) {
    const words = (EVENT_WORDS[whole] ?? EVENT_WORDS[kind])
      .replace("{job}", job.trim())
      .replace("{other}", () => peer || "somebody");
    return `${lifeline} ${words}${why}${more}`;
  }
  switch (kind) {
    case "send":
      return `${lifeline} sends ${cause.toUpperCase()}${name} to ${peer}${more}`;
    case "recv":
      return `${lifeline} receives ${cause.toUpperCase()}${name} from ${peer}${more}`;
    case "lost":
      return `${cause.toUpperCase()}${name} from ${lifeline} to ${peer} is lost${more}`;
    default:
      return kind in run.linkRows
        ? faultWords(run, i)
        : (command(run, i) ?? `${[lifeline, kind, peer].filter(Boolean).join(" ")}${job}${why}${more}`);
  }
}

export const COMMANDS = {
  add: "ADDJOB",
  ack: "ACKJOB",
  fastack: "FASTACK",
  nack: "NACK",
  working: "WORKING",
  deljob: "DELJOB",
  enqueue: "ENQUEUE",
  dequeue: "DEQUEUE",
  release: "RELEASE",
  begin: "BEGIN",
  wait: "WAITJOB",
  purge: "PURGE",
  "purge-dead": "PURGE DEAD",
  redrive: "REDRIVE",
};

function command(run, i) {
  const [name, outcome] = run.kindOf(i).split(".");
  if (!(name in COMMANDS)) return null;
  const job = run.job[i] < 0 || run.isOfOneJob ? "" : ` ${short(run.job[i])}`;
  const more = [run.causeOf(i), run.detailOf(i)].filter(Boolean).join(" ");
  const said =
    outcome === "invoke"
      ? `${run.lifelineOf(i)} asks ${run.peerOf(i)}: ${COMMANDS[name]}${job}`
      : `${run.lifelineOf(i)} has the outcome of ${COMMANDS[name]}${job}: ${outcome}`;
  return more ? `${said} — ${more}` : said;
}

function faultWords(run, i) {
  const kind = run.kindOf(i);
  const [begun, ended] = [1, 2].map((side) =>
    run.bars.filter((bar) => bar[side] === run.time[i] && bar[2] > bar[1]),
  );
  const isEnd = run.linkRows[kind];
  const told = (isEnd ? ended : begun)
    .filter(([, , , , , , isOfLinks]) => isOfLinks)
    .map((bar) => `${bar[0]} ${bar[3]}`);
  return `${isEnd ? "over: " : ""}${told.join(", ") || `${kind} ${run.lifelineOf(i)} ${run.peerOf(i)}`}`;
}
