// Four steps for those who see the sandbox for the first time. Each does one thing, and lets time go on.

import { redraw } from "./app.js";
import { element } from "./elements.js";
import { card } from "./parts.js";
import { steer } from "./steer.js";

const KEY = "disque.toured";
const PACE = 1;
const WAIT = 10_000; // milliseconds for which a person waits for a job

const isAway = () => localStorage.getItem(KEY) === "yes";

function putAway(isIt) {
  localStorage.setItem(KEY, isIt ? "yes" : "no");
  redraw();
}

// The operation, and then time goes on.
const act = (data, operation, args) => async () => {
  if ((await steer(operation, args)) && !data.pace && !data.doing) await steer("pace", { pace: PACE });
};

export function tour(data, mayAct) {
  if (!mayAct) return null;
  if (isAway()) return element("p", {}, element("button", { class: "plain", click: () => putAway(false) }, "Show the first steps"));
  const { counts, in_hand: inHand, nodes } = data;
  const up = nodes.filter(({ state }) => state === "up");
  const [mine] = inHand;
  const victim = up.find(({ name }) => name === mine?.node) ?? up[0];
  const wasKilled = nodes.some(({ state }) => state === "down") || data.operations.some(({ words }) => /is killed|is started/.test(words));
  const steps = [
    [
      "Add a job.",
      "Its replicas go to two nodes: ◌ in transit, ○ held, ● in a queue.",
      counts.added > 0,
      up[0] && ["Add a job", act(data, "add", { node: up[0].name, queue: "mail", count: 1, replicate: Math.min(2, nodes.length), retry: 5 })],
    ],
    [
      "Take it, as a worker would.",
      "You have 5 s (RETRY) to acknowledge it. Until then it is not delivered to another worker.",
      counts.delivered > 0,
      up[0] && ["Take it", act(data, "take", { node: up[0].name, queue: "mail", wait: WAIT })],
    ],
    [
      "Kill the node that has delivered it to you.",
      "Your acknowledgement can no longer reach it.",
      wasKilled,
      victim && up.length > 1 && [`Kill ${victim.name}`, act(data, "kill", { node: victim.name })],
    ],
    [
      "Watch.",
      "After RETRY the other holder requeues the job (redelivered in …): at least once, not exactly once. Take it there, and acknowledge it.",
      counts.again > 0 || counts.delivered > 1,
      data.pace ? null : ["Run time", () => steer("pace", { pace: PACE })],
    ],
  ];
  const now = steps.findIndex(([, , isDone]) => !isDone);
  const line = ([title, words, isDone, button], n) =>
    element(
      "li",
      { class: isDone ? "good-text" : "", "aria-current": n === now ? "step" : null },
      element("b", {}, isDone ? "✓ " : "", title),
      ` ${words} `,
      n === now && button && element("button", { class: "main", click: button[1] }, button[0]),
    );
  return card(
    "First steps",
    { id: "tour", tools: element("button", { class: "plain", click: () => putAway(true) }, "Hide") },
    element("ol", { class: "steps" }, steps.map(line)),
    now < 0 && element("p", {}, "Now cut a link, change a clock, or run workers; then ", element("b", {}, "Finish"), " judges the whole run."),
    element(
      "p",
      { class: "small" },
      "In the timeline below each node is a lane, coloured by its replica; arrows are messages; W is how many nodes hold the job. Idle time is compressed: t shows it at its true length.",
    ),
  );
}
