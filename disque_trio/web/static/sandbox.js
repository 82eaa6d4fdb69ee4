// Page 9: a simulated cluster to break by hand. What is done here harms nobody, so nothing is asked but
// before a run is dropped.

import { app, may, redraw } from "./app.js";
import { close, open } from "./dialog.js";
import { element } from "./elements.js";
import { card, code, heading, sign, waiting } from "./parts.js";
import { map } from "./sandbox-map.js";
import { inHand, jobTable, jobForm, takeForm, workers } from "./sandbox-jobs.js";
import { keys, sandboxTimeline, showJob } from "./sandbox-timeline.js";
import { operationButton, presser, said, seconds, steer } from "./steer.js";
import { tour } from "./tour.js";
import { count, number, span, visible } from "./words.js";

const PACES = [0.1, 0.25, 0.5, 1, 2, 5, 10];
const DRIFT = 50; // milliseconds by which clocks may differ before it is told
const SOON = 150; // milliseconds between looks
let pace = 1; // at which it goes on
let side = new Set(); // nodes that a cut parts from the others

export const sandbox = {
  name: "Sandbox",
  every: SOON,
  topics: () => ({ sandbox: {} }),
  view(heard, route) {
    const put = heard.sandbox;
    if (!put?.data) return [heading("Sandbox"), waiting(put, "the sandbox")];
    const { data } = put;
    app.press = presser(may("steer") ? keysOf(data) : keys());
    app.help = HELP;
    if (route.args.at) takeOver(route.args.at, data);
    return [
      heading("Sandbox", summary(data), ...(may("steer") ? clockTools(data) : [])),
      notice(data),
      tour(data, may("steer")),
      element("div", { class: "sandbox" }, left(data), right(data)),
      verdict(data.verdict, data),
      sandboxTimeline(data, data.verdict?.findings ?? []),
      doings(data),
    ];
  },
};

function summary(data) {
  const where = data.scenario ? `scenario ${data.scenario}, seed ${data.seed}` : `seed ${data.seed}`;
  return `${data.nodes.length} simulated nodes, ${where}. Nothing here is real.`;
}

// From the replay, at the moment where its playhead was. Such a link can come from anywhere.
function takeOver(text, data) {
  history.replaceState(null, "", "#/sandbox");
  app.route.args = {};
  const at = Math.round(Number(text)) || 0;
  const begin = (event) => {
    event.preventDefault();
    close();
    steer("anew", { at });
  };
  // Without a scenario, or to a reader, the server says why nothing is dropped.
  const isDropped = data.has_scenario && may("steer") && (data.all_operations > 0 || data.now > 0);
  if (!isDropped) {
    steer("anew", { at });
    return;
  }
  open(() => [
    "Take over",
    element("p", { class: "note" }, `${DROPPED} Then the scenario is played up to ${seconds(at)}.`),
    element("form", { submit: begin }, answers(element("button", { class: "main", "data-first": true }, "Take over"))),
  ]);
}

const DROPPED = "The run is discarded, in all browsers. Save its operations first if you want to repeat it.";

const answers = (...children) =>
  element("div", { class: "answers" }, element("button", { type: "button", click: close }, "Back"), children);

// Time.

const isOver = (data) => Boolean(data.ended);

function clockTools(data) {
  const isRunning = data.pace > 0 || data.doing;
  const choose = (event) => {
    pace = Number(event.target.value);
    if (data.pace > 0) steer("pace", { pace });
  };
  const off = isOver(data) || null;
  return [
    element(
      "button",
      { class: "main", click: () => play(data), disabled: off, title: "key Space", "aria-pressed": String(Boolean(isRunning)) },
      isRunning ? "Stop" : "Play",
    ),
    element(
      "select",
      { "aria-label": "Seconds of the cluster per second", value: String(data.pace || pace), change: choose, disabled: off },
      PACES.map((each) => element("option", { value: String(each) }, `×${each}`)),
    ),
    operationButton("Step", "step", {}, { key: "→", disabled: off }),
    operationButton("Until quiet", "quiet", {}, { key: "q", disabled: off }),
    operationButton("Judge", "judge", {}, { key: "v" }),
    operationButton("Finish", "finish", {}, { key: "F", disabled: off }),
    element("button", { click: () => anew(data), title: "key B" }, "Begin anew …"),
  ];
}

// What all browsers see goes away, so this one asks.
function anew(data) {
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    side = new Set();
    close();
    steer("anew", { nodes: Number(given.get("nodes")), seed: Number(given.get("seed")) });
  };
  const field = (label, name, value, max) =>
    element("label", { class: "field" }, element("span", {}, label), element("input", { name, type: "number", min: name === "nodes" ? 1 : 0, max, value, required: true, "data-first": name === "nodes" }));
  open(() => [
    "Begin anew",
    element("p", { class: "note" }, DROPPED),
    element(
      "form",
      { submit },
      field("Nodes", "nodes", data.nodes.length, 9),
      field("Seed", "seed", data.seed, Number.MAX_SAFE_INTEGER),
      answers(
        data.has_scenario && element("button", { type: "button", click: () => { close(); steer("anew", { at: 0 }); } }, "Restart the scenario"),
        element("button", { class: "main" }, "Begin"),
      ),
    ),
  ]);
}

function play(data) {
  steer("pace", { pace: data.pace > 0 || data.doing ? 0 : pace });
}

function faster(data, by) {
  const at = PACES.indexOf(data.pace || pace);
  pace = PACES[Math.max(0, Math.min(at + by, PACES.length - 1))];
  if (data.pace > 0) steer("pace", { pace });
  else redraw();
}

function notice(data) {
  const doing = data.doing ? `${data.doing} …` : data.pace ? `time runs ×${data.pace}` : "time is stopped";
  const state = isOver(data) ? `${data.ended}: begin anew to continue` : doing;
  return element(
    "p",
    { class: "sandbox-now" },
    element("b", { class: "sandbox-time" }, seconds(data.now, 6)),
    element("span", { class: isOver(data) ? "warn-text" : "quiet" }, ` ${visible(state)}`),
    data.failed && element("span", { class: "bad-text" }, ` · ${visible(data.failed)}`),
    element("span", { class: said.isBad ? "bad-text" : "", role: "status" }, said.text ? ` · ${said.text}` : ""),
  );
}

// Nodes and links.

function left(data) {
  const mayAct = may("steer");
  const flip = (name) => {
    if (!side.delete(name)) side.add(name);
    redraw();
  };
  return element(
    "div",
    { class: "sandbox-column" },
    card(
      "Nodes and links",
      { note: mayAct ? "Click nodes to select one side of a partition." : null },
      element("div", { class: "sandbox-links" }, map(data, side, mayAct ? flip : null), mayAct && cutting(data)),
      nodeTable(data, mayAct),
    ),
    card("Active faults", { tools: mayAct && data.faults.length > 0 && operationButton("Heal all", "heal", {}, { key: "H" }) }, faultList(data, mayAct)),
  );
}

const chosen = (data) => data.nodes.map(({ name }) => name).filter((name) => side.has(name));
const sides = (data) => [chosen(data), data.nodes.map(({ name }) => name).filter((name) => !side.has(name))];

function cutting(data) {
  const [one, other] = sides(data);
  const words = one.length && other.length ? `${one.join(" ")} | ${other.join(" ")}` : "";
  const nodes = data.nodes.map(({ name }) => element("option", { value: name }, name));
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    steer("cut", { source: given.get("source"), target: given.get("target") });
  };
  const second = data.nodes[1]?.name ?? data.nodes[0].name;
  return element(
    "div",
    { class: "sandbox-cut" },
    element(
      "button",
      { disabled: !words || null, title: "key C", click: () => cut(data) },
      words ? `Cut ${words}` : "Cut: select nodes first",
    ),
    element(
      "form",
      { submit },
      element("select", { name: "source", "aria-label": "From", value: data.nodes[0].name }, nodes),
      element("span", {}, " → "),
      element("select", { name: "target", "aria-label": "To", value: second }, nodes),
      element("button", {}, "Cut one way"),
    ),
  );
}

async function cut(data) {
  if (await steer("cut", { sides: sides(data) })) side = new Set();
  redraw();
}

const STATES = { up: ["good", "●"], down: ["bad", "✖"], paused: ["warn", "◐"], leaving: ["warn", "◌"] };

function nodeTable(data, mayAct) {
  app.rows = data.nodes.map(({ name }) => ({ key: name, title: name, link: null, actions: [] }));
  const head = ["node", "state", "jobs", "queued", mayAct && ""].filter((each) => each !== false);
  return element(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": "Nodes" },
    element(
      "table",
      {},
      element("caption", { class: "unseen" }, "Nodes"),
      element("thead", {}, element("tr", {}, head.map((text) => element("th", { scope: "col" }, text || element("span", { class: "unseen" }, "Operations"))))),
      element("tbody", {}, data.nodes.map((node) => nodeRow(node, mayAct))),
    ),
  );
}

function nodeRow(node, mayAct) {
  const [level, mark] = STATES[node.state];
  const isCurrent = app.cursor === node.name;
  const pick = () => {
    app.cursor = node.name;
    redraw();
  };
  return element(
    "tr",
    { key: node.name, class: "row", tabindex: isCurrent ? "0" : "-1", "aria-current": isCurrent ? "true" : null, "data-row": "", click: pick },
    element("th", { scope: "row" }, node.name),
    element("td", {}, element("span", { class: `state ${level}` }, element("span", { class: "mark", "aria-hidden": "true" }, mark), ` ${node.state}`), oddities(node)),
    element("td", { class: "number" }, number(node.jobs)),
    element("td", { class: "number" }, number(node.queued)),
    mayAct && element("td", { class: "number operations" }, nodeOperations(node)),
  );
}

function oddities({ clock_ms: clock, slow_ms: slow }) {
  const isOff = Math.abs(clock) >= DRIFT;
  const off = Math.abs(clock) < 1000 ? `${Math.abs(clock)} ms` : span(Math.abs(clock) / 1000);
  const words = [isOff && `clock ${clock > 0 ? "+" : "−"}${off}`, slow && `slow ${slow} ms`].filter(Boolean);
  return words.length > 0 && element("span", { class: "warn-text small" }, ` ${words.join(", ")}`);
}

function nodeOperations({ name, state, slow_ms: slow }) {
  const at = { node: name };
  const isDown = state === "down";
  return [
    isDown ? operationButton("Restart", "restart", at, { key: "R" }) : operationButton("Kill", "kill", at, { key: "K", class: "grave" }),
    !isDown && (state === "paused" ? operationButton("Go on", "resume", at, { key: "P" }) : operationButton("Pause", "pause", at, { key: "P" })),
    operationButton(slow ? "Fast" : "Slow", "slow", { ...at, ms: slow ? 0 : 200 }, { key: "S" }),
    operationButton("Clock", "clock", { ...at, ms: 3_600_000 }, { key: "W", "aria-label": `${name}: clock one hour ahead` }),
    !isDown && operationButton("Leave", "leave", at, { key: "L" }),
  ];
}

function faultList({ faults }, mayAct) {
  if (!faults.length) return element("p", { class: "quiet" }, "None of yours.");
  const line = ({ number: fault, words, at }) =>
    element(
      "li",
      { key: fault },
      sign("warn"),
      element("span", {}, `${visible(words)}, since ${seconds(at)}`),
      mayAct && operationButton("Heal", "heal", { fault }),
    );
  return element("ul", { class: "findings heals" }, faults.map(line));
}

// Jobs.

function right(data) {
  const mayAct = may("steer");
  const { counts } = data;
  const words = `${counts.added} confirmed · ${counts.delivered} delivered · ${counts.again} redelivered · ${counts.acked} acknowledged`;
  return element(
    "div",
    { class: "sandbox-column" },
    card("Jobs", { note: words }, mayAct && jobForm(data), jobTable(data)),
    card("Jobs that you have taken", { note: "as a worker" }, mayAct && takeForm(data), inHand(data, mayAct)),
    card("Workers", {}, workers(data, mayAct)),
  );
}

// What the judge says, and what was done.

function verdict(found, { is_finished: isFinished }) {
  if (!found) return null;
  const word = !found.ok ? "FAIL" : found.is_whole ? "PASS" : "no guarantee is violated so far";
  const level = found.ok ? "good" : "bad";
  return card(
    "Verdict",
    { note: found.is_whole || isFinished ? "of the whole run" : `of the run up to ${seconds(found.at)}`, id: "verdict" },
    element("p", { class: `verdict ${level}-text` }, sign(level), ` ${word}`),
    element(
      "ul",
      { class: "plan" },
      found.findings.map(findingLine),
      found.says.map((text) => element("li", {}, text)),
      found.duplicates.map(({ cause, meaning, count }) => element("li", {}, code(cause, meaning), ` × ${count}: ${meaning}`)),
    ),
    found.doubts.length > 0 &&
      element("details", {}, element("summary", {}, "Not judged, or only in some cases"), element("ul", { class: "small" }, found.doubts.map((text) => element("li", {}, text)))),
    found.untested.length > 0 && element("p", { class: "small" }, "Not tested: ", found.untested.map((name, n) => [n ? ", " : "", code(name, found.meanings?.[name])]), "."),
  );
}

const findingLine = ({ property, meaning, says, job, at }) =>
  element("li", { class: "bad-text" }, element("b", {}, property), meaning && ` (${meaning})`, `: ${says} `, job && element("code", {}, job), " ", element("button", { click: () => showJob(job, at) }, `go to ${seconds(at)}`));

function doings(data) {
  const list = [...data.operations].reverse();
  const line = ({ at, words }, n) => element("tr", { key: data.all_operations - n }, element("td", { class: "number" }, seconds(at)), element("td", {}, element("bdi", {}, visible(words))));
  const more = data.all_operations > list.length ? ` (the last ${list.length} of ${data.all_operations})` : "";
  return card(
    "What was done",
    {
      note: `${count(data.events, "event")} · digest ${data.digest.slice(0, 12)}${more}`,
      tools: [
        element("a", { href: "/sandbox/operations.py", download: "" }, "as a Python script"),
        element("a", { href: "/sandbox/plan.json", download: "" }, "as a plan"),
      ],
    },
    list.length
      ? element("div", { class: "table operations-done", tabindex: "0", role: "region", "aria-label": "What was done" }, element("table", {}, element("tbody", {}, list.map(line))))
      : element("p", { class: "quiet" }, "No operation yet. Add a job, run time, cut a link."),
  );
}

// Keys. Those about a node act on the row with the cursor.

function keysOf(data) {
  const node = () => data.nodes.find(({ name }) => name === app.cursor) ?? data.nodes[0];
  const at = () => ({ node: node().name });
  return {
    ...keys(),
    " ": () => play(data),
    ArrowRight: () => steer("step"),
    "+": () => faster(data, 1),
    "-": () => faster(data, -1),
    q: () => steer("quiet"),
    v: () => steer("judge"),
    F: () => steer("finish"),
    B: () => anew(data),
    H: () => steer("heal"),
    C: () => cut(data),
    x: () => {
      if (!side.delete(node().name)) side.add(node().name);
      redraw();
    },
    K: () => steer("kill", at()),
    R: () => steer("restart", at()),
    P: () => steer(node().state === "paused" ? "resume" : "pause", at()),
    S: () => steer("slow", { ...at(), ms: node().slow_ms ? 0 : 200 }),
    W: () => steer("clock", { ...at(), ms: 3_600_000 }),
    L: () => steer("leave", at()),
    A: () => document.querySelector("#add button")?.click(),
    T: () => steer("take", { ...at(), queue: document.querySelector("#take [name=queue]")?.value || "mail" }),
  };
}

const HELP = [
  ["Space", "run and stop time"],
  ["→ ←", "run to the next event; show the previous one"],
  ["+ -", "faster, slower"],
  ["q v F", "run until quiet, judge now, finish and judge"],
  ["j k", "next node, previous node"],
  ["x C", "select the node, partition the selected ones from the others"],
  ["K R P", "kill, restart, pause or resume"],
  ["S W L", "slow or normal, clock one hour ahead, leave"],
  ["A T", "add the job of the form, take a job at the node"],
  ["H B", "heal all, begin anew"],
];
