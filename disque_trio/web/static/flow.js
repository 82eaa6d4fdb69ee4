// A flow: its members as a graph, how far it is, and what can be done about it. And all flows.

import { amend, app, redraw } from "./app.js";
import { element, shape } from "./elements.js";
import { graph } from "./flow-graph.js";
import { attempt, errorWords, jobState } from "./jobs.js";
import { ofFlow, ofJob } from "./operations.js";
import { badge, buttons, card, empty, facts, heading, sign, unreached, waiting } from "./parts.js";
import { table } from "./table.js";
import { UNKNOWN, clock, count, flowLink, inOrAgo, jobLink, named, number, queueLink, shortJob, span, visible } from "./words.js";

// States of members: a sign, words and what they mean; those that need somebody first.
const STATES = {
  dead: ["✖", "dead", "its attempts are used up: members after it wait until it is redriven"],
  "backing-off": ["↻", "backing off", "its last attempt failed or snoozed it: it waits for the next attempt"],
  running: ["►", "running", "a worker has it"],
  queued: ["◔", "queued", "the next worker of its queue gets it"],
  delayed: ["◷", "delayed", "it waits until its delay ends"],
  waiting: ["◌", "waiting", "it waits for its RETRY after a restart of its node"],
  pending: ["○", "waiting for parents", "members before it are not done: it is not added yet"],
  done: ["✓", "done", "it was acknowledged"],
  cancelled: ["⊘", "cancelled", "it was not added, or ended, because it or the flow was cancelled"],
  expired: ["⊗", "expired", "its deadline passed before it was done"],
  skipped: ["–", "skipped", "a member before it is not done, and the flow has ended"],
};
const IN_BAR = ["done", "running", "queued", "delayed", "waiting", "backing-off", "dead", "expired", "cancelled", "skipped", "pending"];
const FLOWS = { running: "", done: "", failed: "bad", cancelled: "", unknown: "warn" };
const ROWS = 100;

const stateOf = (name) => STATES[name] ?? ["?", name, null];
const total = (counts) => Object.values(counts).reduce((sum, many) => sum + many, 0);
const flowState = (word) => (word ? badge(word, FLOWS[word] ?? "") : UNKNOWN);

export const flow = {
  name: "Flow",
  under: "jobs",
  topics: ({ name }) => ({ flow: { id: name } }),
  view(heard, { name, args }) {
    const put = heard.flow;
    const title = [element("span", { class: "kind" }, "Flow "), element("code", {}, name)];
    if (!put?.data) return [heading(title), waiting(put, "this flow")];
    const { data } = put;
    const tools = element("a", { href: "#/flows" }, "All flows");
    if (!data.found) {
      const link = element("a", { href: jobLink(name) }, "The job that has added its members");
      return [heading(title, null, tools), unreached(put), element("p", { class: "empty" }, `${data.why}. `, link)];
    }
    app.actions = ofFlow(data);
    const picture = graphOf(data);
    return [
      heading(title, null, tools, ...buttons(app.actions)),
      unreached(put),
      about(data),
      card("Members", { note: progress(data), tools: null }, bar(data.counts), drawn(picture, data.members, args)),
      listed(picture, data.members, args),
    ];
  },
};

function about({ state, queue, queue_b64: coded, added_ms: added, until_ms: until, coordinator: job, id }) {
  const keeper = job && [
    element("a", { href: jobLink(id) }, element("code", {}, shortJob(id))),
    job.state === "backing-off" && !job.error ? element("span", { class: "small" }, `checks again in ${span(Math.round(job.due_s ?? 0))}`) : [" ", jobState(job.state)],
    job.worker && element("span", { class: "small" }, " at ", named(job.worker)),
    job.error && [" ", errorWords(job.error)],
  ];
  return element(
    "section",
    { class: "card" },
    facts([
      ["state", flowState(state)],
      ["adds its members", keeper || "it has ended"],
      ["queue", element("a", { href: queueLink({ name: queue, name_b64: coded }) }, named(queue))],
      ["added", `${clock(added)} (${inOrAgo(added)})`],
      ["deadline", until ? `${clock(until)} (${inOrAgo(until)})` : UNKNOWN],
    ]),
  );
}

const progress = ({ counts, size }) => `${number(counts.done ?? 0)} of ${number(size)} done`;

function shares(counts) {
  const all = total(counts);
  let at = 0;
  const parts = IN_BAR.filter((name) => counts[name]).map((name) => {
    const width = (100 * counts[name]) / all;
    at += width;
    return shape("rect", { class: `member-${name}`, x: at - width, width, height: 8 });
  });
  return shape("svg", { class: "flow-bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" }, parts);
}

// How many members are in each state: a bar, and words that choose what the table shows.
function bar(counts) {
  const isAt = (name) => (app.route.args.state ?? "") === name;
  const word = (name) => {
    const [mark, words, title] = stateOf(name);
    const click = () => amend({ state: isAt(name) ? "" : name });
    return element("button", { class: `member member-${name}`, "aria-pressed": String(isAt(name)), title, click }, element("span", { class: "mark", "aria-hidden": "true" }, mark), ` ${number(counts[name])} ${words}`);
  };
  const names = [...Object.keys(STATES), ...Object.keys(counts).filter((name) => !(name in STATES))];
  return element(
    "div",
    { class: "flow-progress" },
    shares(counts),
    element("div", { class: "toolbar", role: "group", "aria-label": "Members by state" }, names.filter((name) => counts[name]).map(word)),
  );
}

// The picture.

let last = { id: null, picture: null }; // the members of a flow wait for the same ones all the time

function graphOf({ id, members }) {
  if (last.id !== id) last = { id, picture: graph(members) };
  return last.picture;
}

const SIZES = { wide: { width: 196, height: 60, across: 64, down: 12 }, narrow: { width: 150, height: 60, across: 36, down: 10 } };

function drawn({ boxes, lines, columns }, members, args) {
  const size = innerWidth < 700 ? SIZES.narrow : SIZES.wide;
  const tallest = Math.max(...columns.map(({ length }) => length));
  const [width, height] = [columns.length * (size.width + size.across) - size.across, tallest * (size.height + size.down) - size.down];
  const left = (box) => box.layer * (size.width + size.across);
  // On a narrow screen few layers are seen at once: each begins at the top.
  const least = (box) => (size === SIZES.narrow ? columns[box.layer].length : tallest) / 2;
  const top = (box) => (box.row + least(box)) * (size.height + size.down);
  const at = app.wants.box;
  const isNear = (line) => at === line.from || at === line.to;
  const curve = (line) => {
    const [from, to] = [boxes[line.from], boxes[line.to]];
    const [x1, y1, x2, y2] = [left(from) + size.width, top(from) + size.height / 2, left(to), top(to) + size.height / 2];
    const bend = Math.max(size.across / 2, (x2 - x1) / 3);
    const isDone = from.members.every((place) => members[place].state === "done");
    return shape("path", { class: `${isDone ? "done" : "open"} ${isNear(line) ? "near" : ""}`, d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` });
  };
  const place = (box) => `left:${left(box)}px;top:${top(box)}px;width:${size.width}px;height:${size.height}px`;
  return [
    element(
      "div",
      { class: "flow-scroll", tabindex: "0", role: "region", "aria-label": "Members as a graph, parents to the left" },
      element(
        "div",
        { class: "flow-graph", style: `width:${width + 4}px;height:${height + 4}px` },
        shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, lines.map(curve)),
        boxes.map((box) => drawnBox(box, members, place(box), args)),
      ),
    ),
    element("div", { class: "flow-note note" }, at === undefined || !boxes[at] ? hint(boxes) : noteOf(boxes[at], members)),
  ];
}

const hint = (boxes) =>
  `A dashed line leads from members that are not done.${boxes.some(isFolded) ? " A box with a number stands for all members of one task in its layer: press it to list them." : ""}`;

const isFolded = ({ members: places }) => places.length > 1;

function countsOf({ members: places }, members) {
  const counts = {};
  for (const place of places) counts[members[place].state] = (counts[members[place].state] ?? 0) + 1;
  return counts;
}

const inWords = (counts) =>
  Object.keys(STATES).filter((name) => counts[name]).map((name) => `${number(counts[name])} ${stateOf(name)[1]}`).join(", ");

// As many as a box has room for: what most needs somebody, and how far it is.
function inShort(counts, name) {
  const done = `${number(counts.done ?? 0)} of ${number(total(counts))} done`;
  return name === "done" || (name === "pending" && !counts.done) ? inWords(counts) : name === "pending" ? done : `${number(counts[name])} ${stateOf(name)[1]}, ${done}`;
}

// The state that a box has as a whole: of several the one that most needs somebody.
const worst = (counts) => Object.keys(STATES).find((name) => counts[name]) ?? "pending";

function drawnBox(box, members, style, args) {
  const counts = countsOf(box, members);
  const name = worst(counts);
  const [mark, words] = stateOf(name);
  const [member] = box.members.map((place) => members[place]);
  const told = said(box, members);
  const look = () => {
    if (app.wants.box === box.n) return;
    app.wants.box = box.n;
    redraw();
  };
  const isAt = args.box === String(box.n);
  const shared = { key: `box ${box.n}`, class: `flow-box member-${name} ${isFolded(box) ? "folded" : ""}`, style, title: told, mouseenter: look, focus: look };
  const inner = [
    element("span", { class: "flow-task" }, named(box.task, { title: null }), isFolded(box) && element("b", {}, ` × ${number(box.members.length)}`)),
    element("span", { class: "flow-state" }, element("span", { class: "mark", "aria-hidden": "true" }, mark), " ", isFolded(box) ? inShort(counts, name) : [words, since(member)]),
    isFolded(box) && shares(counts),
    element("span", { class: "unseen" }, more(box, members)),
  ];
  if (!isFolded(box) && member.id) return element("a", { ...shared, href: jobLink(member.id) }, inner);
  return element("button", { ...shared, "aria-pressed": String(isAt), click: () => amend({ box: isAt ? "" : String(box.n), state: "" }) }, inner);
}

const since = ({ state, since_s: seconds, due_s: due, attempt: nth, limit }) => {
  if (state === "running" && seconds != null) return ` for ${span(Math.round(seconds))}`;
  if (state === "backing-off" && due != null) return `, next in ${span(Math.round(due))}`;
  return state === "dead" && limit ? `, ${number(nth)} of ${number(limit)}` : "";
};

const errorOf = ({ error }) => (error ? [error.kind, error.message].filter(Boolean).join(": ") : "");

// What a box has no room for, for those who hear it.
function more(box, members) {
  const failed = box.members.map((place) => members[place]).find(errorOf);
  const error = failed ? `; last error: ${errorOf(failed)}` : "";
  if (isFolded(box)) return visible(`: ${inWords(countsOf(box, members))}${error}`);
  const [place] = box.members;
  const { worker } = members[place];
  return visible(`${worker ? ` at ${worker}` : ""}, member ${place}${error}`);
}

// And for those who point at it.
function said(box, members) {
  const [{ state }] = box.members.map((place) => members[place]);
  return `${visible(box.task)}${isFolded(box) ? "" : `: ${stateOf(state)[1]}`}${more(box, members)}`;
}

function noteOf(box, members) {
  const failed = box.members.map((place) => members[place]).find(errorOf);
  const [place] = box.members;
  const member = members[place];
  const head = isFolded(box)
    ? [named(box.task), `, ${count(box.members.length, "member")}: ${inWords(countsOf(box, members))}`]
    : [named(box.task), `, member ${place}: ${stateOf(member.state)[1]}${since(member)}`, member.worker && [" at ", named(member.worker)]];
  return [
    element("span", {}, head),
    failed && element("span", { class: "flow-error" }, sign("bad"), errorWords(failed.error)),
    !isFolded(box) && member.id && element("a", { href: jobLink(member.id) }, shortJob(member.id)),
  ];
}

// The table.

function listed({ boxes }, members, args) {
  const box = boxes[args.box];
  const order = Object.keys(STATES);
  const places = (box?.members ?? [...members.keys()]).filter((place) => !args.state || members[place].state === args.state);
  places.sort((a, b) => order.indexOf(members[a].state) - order.indexOf(members[b].state) || a - b);
  const rows = places.slice(0, ROWS).map((place) => ({ place, ...members[place] }));
  const some = places.length > ROWS ? `the first ${number(ROWS)} of ${number(places.length)}` : count(places.length, "member");
  const only = [args.state && stateOf(args.state)[1], box && box.task].filter(Boolean).join(", ");
  const tools = (args.state || box) && element("button", { click: () => amend({ state: "", box: "" }) }, "All members");
  return card(only ? ["Members: ", named(only)] : "All members", { note: some, tools: tools || null }, memberTable(rows));
}

function memberTable(rows) {
  const isAlive = ({ state, id }) => id && !["done", "cancelled", "expired", "skipped", "pending"].includes(state);
  return table({
    caption: "Members",
    rows,
    rowOf: (row) => ({
      key: `member ${row.place}`,
      title: `${row.task}, member ${row.place}`,
      link: row.id ? jobLink(row.id) : null,
      actions: isAlive(row) ? ofJob(row.id, [["queued", "dead"].includes(row.state) ? row.state : "active", row.state]) : [],
    }),
    columns: [
      { label: "member", isNumber: true, cell: ({ place }) => number(place) },
      { label: "task", class: "names", cell: ({ task, steps }) => [named(task), steps > 1 && element("span", { class: "small" }, ` and ${steps - 1} more ${steps === 2 ? "step" : "steps"}`)] },
      { label: "state", cell: (row) => memberState(row.state) },
      { label: "job", needs: "id", cell: ({ id }) => (id ? element("a", { href: jobLink(id), tabindex: "-1" }, element("code", { title: id }, shortJob(id))) : "") },
      { label: "after", class: "names", cell: ({ after }) => after.map(([first, end]) => (first === end ? number(first) : `${number(first)} – ${number(end)}`)).join(", ") },
      { label: "attempt", needs: "attempt", isNumber: true, cell: (row) => (row.attempt ? attempt(row) : "") },
      { label: "last error", needs: "error", class: "bodies", cell: ({ error }) => (error ? errorWords(error) : "") },
      { label: "next", needs: "due_s", isNumber: true, cell: ({ state, due_s: due }) => (due == null || state === "running" ? "" : `in ${span(Math.round(due))}`) },
      { label: "leased by", needs: "worker", class: "names", cell: ({ worker, since_s: seconds }) => (worker ? [named(worker), seconds != null && element("span", { class: "small" }, ` for ${span(Math.round(seconds))}`)] : "") },
    ],
    none: "No member is in this state.",
  });
}

function memberState(name) {
  const [mark, words, title] = stateOf(name);
  return element("span", { class: `badge member member-${name}`, title }, element("span", { class: "mark", "aria-hidden": "true" }, mark), ` ${words}`);
}

// All flows.

export const flows = {
  name: "Flows",
  under: "jobs",
  every: 5000,
  topics: () => ({ flows: {} }),
  view(heard) {
    const put = heard.flows;
    const jobs = element("a", { href: "#/jobs" }, "Jobs");
    if (!put?.data) return [heading("Flows", null, jobs), waiting(put, "their flows")];
    const { flows: rows, is_cut: isCut, unread } = put.data;
    return [
      heading("Flows", `${isCut ? "the first " : ""}${count(rows.length, "flow")}`, jobs),
      unreached(put),
      unread > 0 && empty(`${count(unread, "flow is", "flows are")} not listed: codecs of its app have encoded it.`),
      element("section", { class: "card" }, flowTable(rows)),
    ];
  },
};

function flowTable(rows) {
  return table({
    caption: "Flows",
    rows,
    rowOf: (row) => ({ key: row.id, title: `flow ${shortJob(row.id)}`, link: flowLink(row.id), actions: row.state ? ofFlow(row) : [] }),
    columns: [
      { label: "flow", cell: ({ id }) => element("a", { href: flowLink(id), tabindex: "-1" }, element("code", { title: id }, shortJob(id))) },
      { label: "state", cell: ({ state }) => flowState(state) },
      { label: "members", isNumber: true, cell: ({ size }) => number(size) },
      { label: "done", isNumber: true, cell: ({ counts }) => (counts ? number(counts.done ?? 0) : UNKNOWN) },
      { label: "not done", class: "names", cell: ({ counts }) => (counts ? named(inWords({ ...counts, done: 0 })) : UNKNOWN) },
      { label: "tasks", class: "names", cell: ({ tasks }) => named(tasks.join(", ")) },
      { label: "queue", class: "names", cell: ({ queue, queue_b64: coded }) => element("a", { href: queueLink({ name: queue, name_b64: coded }) }, named(queue)) },
      { label: "added", isNumber: true, cell: ({ added_ms: at }) => element("span", { title: clock(at) }, inOrAgo(at)) },
      { label: "deadline", isNumber: true, cell: ({ until_ms: at }) => (at ? element("span", { title: clock(at) }, inOrAgo(at)) : UNKNOWN) },
    ],
    none: "No flow is running.",
  });
}
