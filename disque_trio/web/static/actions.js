// What can be done to what. Capital letters change something; each shows a plan first.

import { nameWords, number, shortJob } from "./words.js";

const PAUSES = [
  ["P", "out", "Stop deliveries"],
  ["I", "in", "Refuse new jobs"],
  ["B", "all", "Stop both ways"],
  ["S", "none", "Start again"],
];

export function ofQueue(queue) {
  const target = nameWords(queue);
  const name = queue.name_b64 ? { queue_b64: queue.name_b64 } : { queue: queue.name };
  const isPaused = Object.keys(queue.paused ?? {}).length > 0;
  const pauses = PAUSES.filter(([, mode]) => mode !== "none" || isPaused).map(
    ([letter, mode, label]) => ({ letter, label, target, verb: "pause", args: { ...name, mode } }),
  );
  const enqueue = { letter: "Q", label: "Queue now", target, verb: "enqueue-queue", args: name };
  return [...pauses, enqueue, ...(queue.dead ? [redrive(name, target, queue.dead)] : []), purge(name, target)];
}

export const redrive = (name, target, dead) => ({
  letter: "R",
  label: "Redrive dead jobs",
  target,
  verb: "redrive",
  args: name,
  form: [
    { name: "limit", label: `At most, of ${number(dead)} (1 to try)`, type: "number", min: 1, value: 1 },
    { name: "rate", label: "Jobs a second", type: "number", min: 1, value: 50 },
  ],
});

const purge = (name, target) => ({
  letter: "D",
  label: "Purge",
  target,
  verb: "purge",
  args: name,
  isGrave: true,
});

export function ofJob(id) {
  const target = shortJob(id);
  const action = (letter, label, verb, more = {}) => ({
    letter,
    label,
    target,
    verb,
    args: { id },
    ...more,
  });
  return [
    action("Q", "Queue now", "enqueue"),
    action("N", "Give back", "nack"),
    action("A", "Mark as done", "ack"),
    action("D", "Delete copies", "deljob", { isGrave: true }),
    action("T", "Trace on", "trace"),
  ];
}

export function ofNode({ node, id, name }) {
  const target = name || node;
  return [
    {
      letter: "L",
      label: "Let it leave",
      target,
      verb: "leave",
      args: { node },
      isGrave: true,
    },
    {
      letter: "F",
      label: "Forget",
      target,
      verb: "forget",
      args: { node: id || node },
      isGrave: true,
    },
  ];
}

export const meet = {
  letter: "M",
  label: "Meet a node",
  target: "the cluster",
  verb: "meet",
  args: {},
  form: [{ name: "address", label: "Address and port", placeholder: "10.0.0.7:7711" }],
};

export const ofWorker = ({ name: target, control }) => [
  { letter: "Q", label: "Take no more jobs", target, verb: "quiet", args: { worker: control } },
  { letter: "S", label: "Take jobs again", target, verb: "resume", args: { worker: control } },
];

export const ofClient = (client) => [
  {
    letter: "K",
    label: "Kick",
    target: client.name || client.address || String(client.id),
    verb: "kick",
    args: { node: client.node, client: client.id },
  },
];
