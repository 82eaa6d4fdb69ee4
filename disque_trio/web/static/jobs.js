// Page 4: jobs in every state, by filters that combine. All of them are in the address.

import { amend, app, go } from "./app.js";
import { element } from "./elements.js";
import { badge, body, heading, noneOf, unreached, waiting } from "./parts.js";
import { offered, ofJob, propose } from "./operations.js";
import { download } from "./picture.js";
import { table } from "./table.js";
import { viewBar } from "./views.js";
import { UNKNOWN, clock, count, inOrAgo, jobLink, named, number, queueLink, shortJob, span, visible } from "./words.js";

// The words of a job's states, everywhere in the console.
export const STATES = {
  queued: "in a queue: the next worker that asks gets it",
  running: "a worker or another client has it",
  "backing-off": "its last attempt failed or snoozed it: it waits for the next attempt",
  delayed: "it waits until its delay ends",
  waiting: "it waits for its RETRY after a restart of its node",
  dead: "its attempts are used up, or its worker gave up: it is not delivered until it is redriven",
  ended: "it has ended: each node remembers the latest ended jobs since its start",
};
const FIELDS = [
  ["queue", "queue"],
  ["task", "task"],
  ["worker", "worker"],
  ["group", "group"],
  ["key", "key"],
  ["error", "error"],
  ["text", "text in the body"],
];
const AGES = [
  ["", "any age"],
  ["60", "older than 1 min"],
  ["3600", "older than 1 h"],
  ["86400", "older than 1 d"],
];
const ROWS = 100;
const MOST = 1000;
const TYPING_MS = 300;
const typing = {}; // by field

// What the address says, as the server takes it.
export function filterOf(args) {
  const names = [...FIELDS.map(([name]) => name), "state", "place", "queue_b64"];
  const given = names.filter((name) => args[name]).map((name) => [name, args[name]]);
  return { ...Object.fromEntries(given), ...(Number(args.older) > 0 ? { older: Number(args.older) } : {}) };
}

export const jobsLink = (filter) => `#/jobs?${new URLSearchParams(filter)}`;

export const jobs = {
  name: "Jobs",
  topics: ({ args }) => ({ jobs: { ...filterOf(args), ...(args.most ? { most: MOST } : {}) } }),
  view(heard, { args }) {
    const put = heard.jobs;
    const note = put?.data && found(put.data);
    const top = [heading("Jobs", note, element("a", { href: "#/flows" }, "Flows"), ...tools(put?.data?.jobs ?? [], args)), viewBar("jobs"), filters(args)];
    if (!put?.data) return [...top, waiting(put, "their jobs")];
    return [...top, unreached(put), element("section", { class: "card" }, list(put.data.jobs, "Jobs", noneOf(put, "No job matches."))), rest(put.data, args)];
  },
};

const found = ({ jobs: rows, is_cut: isCut }) => `${isCut && rows.length ? "the first " : ""}${count(rows.length, "job")}${isCut && !rows.length ? " so far" : ""}`;

function rest({ is_cut: isCut, jobs: rows }, args) {
  if (!isCut) return null;
  return element(
    "p",
    { class: "pager" },
    `${rows.length ? `There may be more than these ${number(rows.length)}` : "There may be some: the nodes had time to search only a part of their jobs. They are queried again, with more time"}. Narrow the filters`,
    !args.most && rows.length >= ROWS && [", or ", element("button", { click: () => amend({ most: "1" }) }, `show ${number(MOST)}`)],
  );
}

function filters(args) {
  const input = (name) => (event) => {
    const { value } = event.target;
    clearTimeout(typing[name]);
    typing[name] = setTimeout(() => {
      if (app.route.page !== "jobs") return;
      const id = value.trim();
      if (/^D-[\w+/=-]{30,}$/.test(id)) go(jobLink(id));
      else amend({ [name]: value, ...(name === "queue" ? { queue_b64: "" } : {}) });
    }, TYPING_MS);
  };
  const field = ([name, label], n) =>
    element("input", {
      type: "search",
      id: n === 0 ? "find" : null,
      class: n === 0 ? "filter first" : "filter",
      "aria-label": label,
      placeholder: n === 0 ? "queue, or the id of a job" : label,
      value: args[name] ?? "",
      spellcheck: "false",
      input: input(name),
    });
  const isAt = (state) => (args.state ?? "") === state;
  const segment = ([state, title]) =>
    element("button", { title, "aria-pressed": String(isAt(state)), click: () => amend({ state, most: "" }) }, state || "all");
  const older = (event) => amend({ older: event.target.value });
  return element(
    "div",
    { class: "toolbar" },
    element("div", { class: "segments", role: "group", "aria-label": "State" }, [["", "jobs in every state"], ...Object.entries(STATES)].map(segment)),
    FIELDS.map(field),
    args.place && element("button", { title: "any place", click: () => amend({ place: "" }) }, named(args.place), " ✕"),
    element("select", { "aria-label": "Age", value: args.older ?? "", change: older }, AGES.map(([value, words]) => element("option", { value }, words))),
  );
}

// What can be done to all jobs that fit: an operation with one plan, and files of what is shown.
function tools(rows, args) {
  const states = [...new Set(rows.flatMap(({ state }) => [asNode(state), state]))];
  const filter = filterOf(args);
  const isNarrow = Object.keys(filter).length > 0;
  const actions = isNarrow && filter.state !== "ended" ? ofAll(filter, states) : [];
  const save = (kind) => () => download(`jobs.${kind}`, kind === "csv" ? asCsv(rows) : JSON.stringify(rows, null, 2), `text/${kind}`);
  const line = (action) => element("button", { class: action.isGrave ? "grave" : "", click: () => propose([action]) }, `${action.label} all`);
  return [
    ...(rows.length ? actions.map(line) : []),
    rows.length > 0 && element("button", { click: save("csv") }, "CSV"),
    rows.length > 0 && element("button", { click: save("json") }, "JSON"),
  ];
}

export const ofAll = (filter, states) =>
  offered("jobs", { id: "" }, "all matching jobs", states)
    .filter(({ operation }) => !["jobs trace", "jobs delete", "jobs edit"].includes(operation))
    .map((action) => ({ ...action, args: {}, filter }));

// The states of nodes, which operations are for.
export const asNode = (state) => (["queued", "dead"].includes(state) ? state : "active");

const COLUMNS = ["id", "state", "queue", "task", "group", "key", "priority", "attempt", "limit", "error", "place", "added", "due_s", "worker", "outcome", "ended", "body"];

function asCsv(rows) {
  // A spreadsheet takes a cell that begins so for a formula.
  const safe = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
  const cell = (value) => `"${safe(String(value ?? "")).replaceAll('"', '""')}"`;
  const line = (job) => {
    const { error } = job;
    const told = { ...job, error: error && [error.kind, error.message].filter(Boolean).join(": "), place: error?.place, added: new Date(job.added_ms).toISOString(), ended: job.ended_ms && new Date(job.ended_ms).toISOString() };
    return COLUMNS.map((name) => cell(told[name])).join(",");
  };
  return [COLUMNS.join(","), ...rows.map(line)].join("\r\n");
}

export const jobState = (word) => badge(word ?? "—", `job-${word}`, STATES[word] ?? null);

export const attempt = ({ attempt: nth, limit }) => (limit ? `${number(nth)} of ${number(limit)}` : number(nth));

export const errorWords = (error) => (error ? named([error.kind, error.message].filter(Boolean).join(": "), error.place ? { title: visible(`${error.kind}: ${error.message} (${error.place})`) } : {}) : UNKNOWN);

function list(rows, caption, none) {
  return table({
    caption,
    rows,
    rowOf: (job) => ({ key: job.id, title: shortJob(job.id), link: jobLink(job.id), actions: job.outcome ? [] : ofJob(job.id, [asNode(job.state), job.state], job) }),
    columns: [
      { label: "job", cell: (job) => element("a", { href: jobLink(job.id), tabindex: "-1" }, element("code", { title: job.id }, shortJob(job.id))) },
      { label: "state", cell: (job) => jobState(job.state) },
      { label: "task", needs: "task", class: "names", cell: (job) => (job.task ? named(job.task) : UNKNOWN) },
      { label: "queue", class: "names", cell: (job) => element("a", { href: queueLink({ name: job.queue, name_b64: job.queue_b64 }) }, named(job.queue)) },
      { label: "group", needs: "group", class: "names short", cell: (job) => (job.group ? element("a", { href: jobsLink({ group: job.group }) }, named(job.group)) : "") },
      { label: "key", needs: "key", class: "names short", cell: (job) => (job.key ? named(job.key) : "") },
      { label: "attempt", isNumber: true, cell: attempt },
      { label: "last error", needs: "error", class: "bodies wrapped", cell: (job) => (job.error ? errorWords(job.error) : "") },
      { label: "next", isNumber: true, title: "when it is enqueued, or requeued unless it ends before that", cell: (job) => (job.due_s === null ? "" : `in ${span(Math.round(job.due_s))}`) },
      { label: "outcome", needs: "outcome", cell: (job) => job.outcome ?? "" },
      { label: "ended", isNumber: true, needs: "ended_ms", cell: (job) => job.ended_ms && element("span", { title: clock(job.ended_ms) }, inOrAgo(job.ended_ms)) },
      { label: rows[0]?.outcome ? "delivered to" : "leased by", needs: "worker", class: "names", cell: (job) => (job.worker ? [named(job.worker), job.since_s !== null && element("span", { class: "small" }, ` for ${span(Math.round(job.since_s))}`)] : "") },
      { label: "added", isNumber: true, cell: (job) => element("span", { title: clock(job.added_ms) }, inOrAgo(job.added_ms)) },
      { label: "body", class: "bodies spare", cell: (job) => body(job) },
    ],
    none,
  });
}

