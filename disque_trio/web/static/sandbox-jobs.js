// Jobs of the sandbox: adding them, where they are, those in a person's hands, and workers.

import { element } from "./elements.js";
import { showJob } from "./sandbox-timeline.js";
import { operationButton, steer } from "./steer.js";
import { count, named, shortJob, span, visible } from "./words.js";

const WAIT = 10_000; // milliseconds for which a person waits for a job

const options = (data) => data.nodes.map(({ name }) => element("option", { value: name }, name));

const at = (data, properties = {}) =>
  element("select", { name: "node", "aria-label": "At node", value: data.nodes[0].name, ...properties }, options(data));

const field = (label, name, value, properties = {}) =>
  element("label", {}, `${label} `, element("input", { name, value, size: 5, ...properties }));

const whole = (label, name, value, properties = {}) =>
  field(label, name, value, { type: "number", min: 0, ...properties });

function form(id, label, children, operation) {
  const submit = (event) => {
    event.preventDefault();
    operation(new FormData(event.target));
  };
  return element("form", { id, class: "sandbox-form", submit }, children, element("button", {}, label));
}

// Fields that are left empty are not sent.
const given = (form_, names) =>
  Object.fromEntries(names.filter((name) => form_.get(name) !== "").map((name) => [name, Number(form_.get(name))]));

export function jobForm(data) {
  const fields = [
    whole("", "count", 1, { min: 1, max: 100, "aria-label": "How many" }),
    field("to queue", "queue", "mail", { size: 8, required: true, maxlength: 100 }),
    element("span", {}, "at ", at(data)),
    whole("copies", "replicate", Math.min(2, data.nodes.length), { min: 1, max: data.nodes.length }),
    whole("RETRY", "retry", 5, { title: "seconds until it is redelivered; 0: at most once" }),
    whole("DELAY", "delay", "", { title: "seconds" }),
  ];
  return form("add", "Add", fields, (said) =>
    steer("add", {
      node: said.get("node"),
      queue: said.get("queue"),
      ...given(said, ["count", "replicate", "retry", "delay"]),
    }),
  );
}

export function jobTable(data) {
  if (!data.jobs.length) {
    return element("p", { class: "quiet" }, data.all_operations ? "No running node has a job." : "None yet.");
  }
  const more = data.all_jobs - data.jobs.length;
  return element(
    "div",
    { class: "table jobs-now", tabindex: "0", role: "region", "aria-label": "Jobs" },
    element(
      "table",
      {},
      element("caption", { class: "unseen" }, "Jobs and their copies"),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          element("th", { scope: "col" }, "job"),
          data.nodes.map(({ name }) => element("th", { scope: "col" }, name)),
          element("th", { scope: "col", class: "number" }, "delivered"),
          element("th", { scope: "col", class: "number" }, "redelivered in"),
        ),
      ),
      element("tbody", {}, data.jobs.map((job) => jobRow(job, data.nodes))),
    ),
    more > 0 && element("p", { class: "small" }, `and ${count(more, "younger job")}`),
  );
}

const COPIES = { copying: "◌", held: "○", queued: "●", acked: "✓" };

function jobRow(job, nodes) {
  const cell = ({ name, state }) => {
    const copy = job.copies[name];
    const words = copy ? `${COPIES[copy]} ${copy}` : state === "down" ? "—" : "";
    return element("td", { class: `copy ${copy ?? ""}` }, words);
  };
  return element(
    "tr",
    { key: job.id },
    element("th", { scope: "row", title: job.id }, element("button", { class: "plain job", click: () => showJob(job.id) }, named(job.body)), " ", element("span", { class: "small" }, visible(job.queue))),
    nodes.map(cell),
    element("td", { class: "number" }, job.delivered ? `${job.delivered}×` : "no"),
    element("td", { class: "number" }, job.again_ms === null ? "" : span(job.again_ms / 1000)),
  );
}

export function takeForm(data) {
  const fields = [
    element("span", {}, "from queue "),
    field("", "queue", "mail", { size: 8, required: true, "aria-label": "Queue" }),
    element("span", {}, "at ", at(data)),
  ];
  return form("take", "Take a job", fields, (said) =>
    steer("take", { node: said.get("node"), queue: said.get("queue"), wait: WAIT }),
  );
}

export function inHand(data, mayAct) {
  const waiting = data.asked.filter(({ reply, words }) => reply === "…" && words.startsWith("GETJOB"));
  const last = data.asked.at(-1);
  const body = (id) => data.jobs.find((job) => job.id === id)?.body ?? shortJob(id);
  const line = ({ job, node, again, nacks }) =>
    element(
      "li",
      { key: `${job} ${node}` },
      element("span", { title: job }, named(body(job)), ` from ${node}${again ? `, redelivered (${again}×)` : ""}${nacks ? `, ${count(nacks, "NACK")}` : ""}`),
      mayAct && [
        operationButton("Acknowledge", "answer", { job, node, how: "ack" }),
        operationButton("Give back", "answer", { job, node, how: "nack" }),
        operationButton("Extend lease", "answer", { job, node, how: "working" }),
        operationButton("Forget", "answer", { job, node, how: "drop" }),
      ],
    );
  return [
    element("ul", { class: "heals" }, data.in_hand.map(line)),
    waiting.length > 0 && element("p", { class: "quiet" }, `Waiting for jobs: ${waiting.map(({ node }) => node).join(" ")}.`),
    last && element("p", { class: "small" }, `Last request: ${visible(last.words)} at ${last.node} → ${visible(last.reply)}`),
  ];
}

export function workers(data, mayAct) {
  const line = ({ name, node, queue, work_ms: work, acks, has_job: isBusy }) =>
    element(
      "li",
      { key: name },
      element("span", {}, `${name} at ${node}: ${visible(queue)}, ${span(work / 1000)} each, ${acks ? "acknowledges" : "never acknowledges"}${isBusy ? ", at work" : ""}`),
      mayAct && operationButton("Remove", "remove-worker", { worker: name }),
    );
  const hiring = form(
    "add-worker",
    "Add worker",
    [
      element("span", {}, "at ", at(data)),
      field("queue", "queue", "mail", { size: 8, required: true }),
      whole("work, ms", "work", 200, { min: 1, required: true }),
      element("label", {}, element("input", { type: "checkbox", name: "acks", checked: true }), " acknowledges"),
    ],
    (said) =>
      steer("add-worker", {
        node: said.get("node"),
        queue: said.get("queue"),
        work: Number(said.get("work")),
        acks: said.has("acks"),
      }),
  );
  return [
    mayAct && hiring,
    element("ul", { class: "heals" }, data.workers.map(line)),
    !data.workers.length && element("p", { class: "quiet" }, "None."),
  ];
}
