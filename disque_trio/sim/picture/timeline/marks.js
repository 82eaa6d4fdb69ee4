// How a row is drawn in the diagram: its mark, label and colour.

import { NONE } from "./run.js";
import { COMMANDS } from "./sentences.js";

const CAUSE_COLOURS = {
  D0: "d0",
  D1: "d1",
  D2: "d2",
  D3: "d3",
  D4: "d4",
  D5: "d5",
  D9: "d9",
  DX: "dx",
  "": "muted",
};

export const FAMILIES = {
  repljob: "copy",
  gotjob: "copy",
  setack: "ack",
  result: "ack",
  gotack: "ack",
  ackholders: "ack",
  willqueue: "requeue",
  queued: "requeue",
  enqueue: "told-to",
  needjobs: "move",
  yourjobs: "move",
  deljob: "delete",
  working: "work",
};
// What messages are for, by name.
export const MEANINGS = {
  repljob: "asks another node to hold a replica of the job",
  gotjob: "confirms that the node holds a replica",
  setack: "says that the job is acknowledged",
  result: "says that the job is acknowledged, with its result",
  gotack: "confirms that the node knows of the acknowledgement",
  ackholders: "confirms the same, and names the holders that the node knows",
  willqueue: "announces that the node is about to enqueue the job: another that has it enqueued objects",
  queued: "says that the node has the job enqueued",
  working: "says that a worker has the job: the others wait for another RETRY",
  enqueue: "asks a node to enqueue the job now",
  needjobs: "asks for jobs of a queue, for clients that wait",
  yourjobs: "moves jobs to a node whose clients wait for them",
  deljob: "removes the replica of the job",
};
export const ANSWERS = new Set(["gotjob", "gotack", "ackholders", "queued"]);
const ANSWERED = { ok: "good", refused: "refused", unknown: "unknown" };
const QUIET = new Set(["served", "acked", "dropped", "given"]);

export const familyOf = (message) => FAMILIES[message] ?? "gossip";

// The mark of a row on its lifeline; null where the row is only an arrow.
export function markOf(run, i, nth) {
  const kind = run.kindOf(i);
  const cause = run.causeOf(i);
  switch (kind) {
    case "send":
    case "recv":
    case "lost":
      return null;
    case "hold":
      return cause === "dummy" ? { glyph: "✓", hue: "muted", label: "dummy ack" } : {};
    case "drop":
      return { glyph: "✕", hue: "muted", label: cause === "collected" ? "" : cause };
    case "queue":
      return {
        glyph: "Q",
        hue: "queued",
        label: cause === "first" ? "queued" : `queued: ${run.whyOf(i).replace("-", " ")}`,
      };
    case "unqueue":
      return QUIET.has(cause) ? null : { label: `unqueued: ${cause}` };
    case "serve":
      if (run.isRepeat.has(i) && run.plannedBy(i)) return { glyph: "S", hue: "requeue", label: run.plannedBy(i) };
      if (run.isRepeat.has(i)) return { glyph: "S", hue: "bad", label: "duplicate", isLoud: true };
      return { glyph: "S", hue: "accent", label: "served" };
    case "give":
      return { glyph: "G", hue: "move", label: "given away" };
    case "dead":
      return { glyph: "†", hue: "bad", label: `dead: ${cause}` };
    case "postpone":
      if (cause === "release") return { glyph: "Z", hue: "requeue", label: "snoozed" };
      return { label: cause === "nack" ? "backs off" : "waits" };
    case "redrive":
      return { label: "redriven" };
    case "acked":
      return { glyph: "✓", hue: "good", label: cause === "ackjob" ? "acked" : "" };
    case "get.deliver":
      return {
        glyph: nth,
        hue: nth > 1 ? "bad" : "accent",
        label: nth > 1 ? "duplicate" : "delivered",
        isLoud: nth > 1,
      };
    case "crash":
      return { glyph: "✖", hue: "bad", label: `crash ${cause}`, isLoud: true };
    case "start":
      return { glyph: "▲", hue: "good", label: `start ${cause}` };
    default:
      return (
        commandMark(kind) ??
        (run.lifeline[i] === NONE || kind in run.linkRows ? null : { label: kind })
      );
  }
}

function commandMark(kind) {
  const [command, outcome] = kind.split(".");
  if (!(command in COMMANDS)) return null;
  if (outcome === "invoke") return { label: COMMANDS[command] };
  return {
    hue: ANSWERED[outcome],
    glyph: outcome === "ok" ? "" : outcome === "refused" ? "!" : "?",
    label: outcome === "ok" ? "" : outcome,
  };
}

// Text is measured: with an estimate, labels of wide letters overlapped.
const measuring = document.createElement("canvas").getContext("2d");
const widths = new Map();
function widthIn(font, text) {
  const key = `${font} ${text}`;
  if (!widths.has(key)) {
    measuring.font = `${font} system-ui, "DejaVu Sans", sans-serif`;
    widths.set(key, measuring.measureText(text).width);
  }
  return widths.get(key);
}
export const textWidth = (text) => widthIn("700 11px", text);
export const nameWidth = (text) => widthIn("10px", text); // names of messages
export const GAP = 6; // between two labels on one lifeline

export function roomFor(mark) {
  if (!mark) return 0;
  return Math.max(mark.glyph !== undefined ? 24 : 10, mark.label ? textWidth(mark.label) + GAP + 2 : 0);
}

export function causeColour(cause) {
  return CAUSE_COLOURS[cause] ?? CAUSE_COLOURS[cause.slice(0, 2)] ?? "other";
}
