// Page 4: one job, as every node has it now, and what it survives.

import { app, go } from "./app.js";
import { element } from "./elements.js";
import { body, buttons, card, facts, heading, sign, unreached, waiting } from "./parts.js";
import { ofJob } from "./operations.js";
import { isTraced, jobline } from "./jobline.js";
import { asNode, attempt, jobState, jobsLink } from "./jobs.js";
import { table } from "./table.js";
import { UNKNOWN, clock, count, flowLink, inOrAgo, named, number, queueLink, sentence, shortJob, span, visible } from "./words.js";

export const job = {
  name: "Job",
  under: "jobs",
  topics: ({ name }) => (name ? { job: { id: name }, "job-timeline": { id: name } } : {}),
  view(heard, { name }) {
    const search = finder(name);
    if (!name) return [heading("Job", "Its state, where its replicas are, and what happened to it."), search, hint()];
    const put = heard.job;
    const title = [element("span", { class: "kind" }, "Job "), element("code", {}, name)];
    if (!put?.data) return [heading(title), search, waiting(put, "this job")];
    const happened = heard["job-timeline"];
    const { summary } = put.data;
    const actions = ofJob(name, summary ? [asNode(summary.state), summary.state] : [], put.data);
    const ofCopies = actions.filter(({ operation }) => operation !== "jobs trace");
    const tracing = actions.find(({ operation }) => operation === "jobs trace");
    const line = jobline(happened, name, tracing);
    const missing = unreached({ ...put, unreached: { ...happened?.unreached, ...put.unreached } });
    app.actions = [...(put.data.found ? ofCopies : []), ...(isTraced(happened) || !tracing ? [] : [tracing])];
    if (!put.data.found && summary) return [heading(title), missing, about(put.data), failure(summary.error), result(put.data), line, bodyCard(summary)];
    if (!put.data.found) return [heading(title), search, missing, lost(put.data), line];
    return [
      heading(title, null, ...buttons(ofCopies)),
      missing,
      about(put.data),
      failure(summary?.error),
      result(put.data),
      line,
      copies(put.data),
      holders(put.data),
      element("div", { class: "charts" }, explained(put.data), bodyCard(put.data)),
    ];
  },
};

function finder(name) {
  const submit = (event) => {
    event.preventDefault();
    const id = new FormData(event.target).get("id").trim();
    if (id) go(`#/job/${encodeURIComponent(id)}`);
  };
  return element(
    "form",
    { class: "toolbar", submit },
    element("input", {
      id: "find",
      name: "id",
      type: "search",
      "aria-label": "ID of a job",
      placeholder: "ID of a job, such as D-5a1f30c2-… ( / )",
      value: name,
      spellcheck: "false",
    }),
    element("button", { class: "main" }, "Look"),
  );
}

const hint = () =>
  element("p", { class: "empty" }, "Paste an ID here, or open a job from its queue, its worker or the dead jobs.");

const lost = ({ why }) =>
  element("p", { class: "empty" }, why || "No node that answers has this job: it has ended, or was never added.");

const milliseconds = (value) => span(Number(value) / 1000);

const NAMES = {
  group: ["group", (group) => (group ? element("a", { href: jobsLink({ group }) }, named(group)) : "")],
  key: ["unique key", (key) => element("a", { href: jobsLink({ key }) }, named(key))],
  task: ["task", (task) => element("a", { href: jobsLink({ task }) }, named(task))],
  queue: ["queue", (name, { queue_b64: raw }) => element("a", { href: queueLink({ name, name_b64: raw }) }, named(name))],
  added_ms: ["added", (value) => `${clock(value)} (${inOrAgo(value)})`],
  retry_s: ["redelivered after", (value) => (value === 0 ? "never" : span(value))],
  ttl_s: ["lives for", span],
  left_s: ["time left", span],
  delay_s: ["delay", span],
  replicate: ["replicas requested", number],
  priority: ["priority", number],
  backoff: ["backoff", milliseconds],
  "max-backoff": ["longest backoff", milliseconds],
  keep: ["key kept for", milliseconds],
};

function failure(error) {
  if (!error) return null;
  const { kind, message, place, traceback, at_ms: at } = error;
  return card(
    "Last error",
    { note: at ? element("span", { title: clock(at) }, inOrAgo(at)) : null },
    element("p", {}, element("b", {}, named(kind)), message && ": ", element("bdi", { class: "whole" }, visible(message))),
    place && element("p", { class: "note" }, "at ", named(place)),
    traceback && element("pre", { class: "whole" }, traceback.split("\n").map(visible).join("\n")),
  );
}

function result({ result: kept }) {
  if (!kept) return null;
  return card("Result", { note: `kept for another ${span(Math.round(kept.left_s))}` }, body(kept, true));
}

function standing({ state, attempt: nth, limit, worker, since_s: since, due_s: due, outcome, ended_ms: ended }) {
  if (outcome) {
    return [
      ["state", [jobState(state), " ", outcome]],
      ["ended", `${clock(ended)} (${inOrAgo(ended)})`],
      worker ? ["delivered to", element("a", { href: jobsLink({ worker, state }) }, named(worker))] : null,
      ["attempts", number(nth)],
    ];
  }
  return [
    ["state", [jobState(state), " ", due != null && state !== "running" && element("span", { class: "small" }, `next in ${span(Math.round(due))}`)]],
    ["attempt", attempt({ attempt: nth, limit })],
    worker ? ["worker", [element("a", { href: jobsLink({ worker }) }, named(worker)), since != null && element("span", { class: "small" }, ` for ${span(Math.round(since))}`)]] : null,
  ];
}

function about({ facts: known, summary, waits_for: limits, flow }) {
  // What it does not have is left out.
  const given = Object.entries(known ?? {}).filter(([name, value]) => name !== "queue_b64" && value !== null && value !== "");
  const pairs = given.map(([name, value]) => {
    const [label, words] = NAMES[name] ?? [name.replaceAll(/[_-]/g, " "), (text) => named(text)];
    return [label, words(value, known)];
  });
  const waits = limits ? [["waits for", `the limits of its queue: ${limits}`]] : [];
  const member = flow ? [["flow", element("a", { href: flowLink(flow) }, element("code", {}, shortJob(flow)))]] : [];
  return element("section", { class: "card" }, facts([...(summary ? standing(summary) : []), ...member, ...waits, ...pairs]));
}

function copies(data) {
  const several = data.copies.filter(({ state }) => state === "queued").length > 1;
  const note = several ? "Queued at more than one node: it may be delivered twice." : null;
  return card(
    "Replicas",
    { note },
    table({
      caption: "The job at each node",
      rows: data.copies,
      columns: [
        { label: "node", cell: (copy) => named(copy.name || copy.node) },
        { label: "state", cell: (copy) => jobState(copy.state) },
        { label: "redelivered in", isNumber: true, title: "unless it is acknowledged before that", cell: (copy) => span(copy.lease_s ?? copy.next_s) },
        { label: "redelivered", isNumber: true, cell: (copy) => number(copy.deliveries) },
        { label: "given back", isNumber: true, cell: (copy) => number(copy.nacks) },
        { label: "knows of copies at", cell: (copy) => names(copy.holders) },
        { label: "confirmed by", cell: (copy) => names(copy.confirmed) },
      ],
      none: "No replica is left.",
    }),
  );
}

const STATES = { none: "none yet", unknown: "no answer" };

function holders(data) {
  if (!data.holders?.length) return null;
  const wanted = data.facts.replicate;
  const confirmed = data.holders.filter(({ state }) => !(state in STATES)).length;
  const rest = confirmed < wanted ? "; the others follow or are re-created" : "";
  const { well = true, text = "" } = data.zones ?? {};
  const hasZones = data.holders.some(({ zone }) => zone);
  return card(
    "Where it is, and why",
    { note: `confirmed by ${confirmed} of ${count(wanted, "node")}${rest}` },
    text && element("ul", { class: "findings" }, element("li", { class: well ? "good" : "warn" }, sign(well ? "good" : "warn"), element("span", {}, sentence(text)))),
    table({
      caption: "Nodes that have the job, or may have it",
      rows: data.holders,
      columns: [
        { label: "node", cell: (row) => named(row.node) },
        ...(hasZones ? [{ label: "zone", cell: (row) => named(row.zone || UNKNOWN) }] : []),
        { label: "its copy", cell: (row) => STATES[row.state] ?? jobState(row.state) },
        { label: "why this node", cell: (row) => named(row.why) },
      ],
    }),
  );
}

const names = (list) => (list?.length ? named(list.join(", ")) : UNKNOWN);

function explained({ explain }) {
  if (!explain?.length) return null;
  const lines = explain.map((text) => element("li", {}, sentence(text)));
  return card("What it survives", {}, element("ul", { class: "explain" }, lines));
}

const bodyCard = (data) => card("Body", {}, element("div", { class: "whole" }, body(data, true)));
