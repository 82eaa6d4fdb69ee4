// Page 5: workers with what they work on, and plain clients.

import { app, nodeName } from "./app.js";
import { element, shape } from "./elements.js";
import { atLeast, badge, card, empty, heading, noneOf, state, unreached, waiting } from "./parts.js";
import { offered } from "./operations.js";
import { table } from "./table.js";
import { UNKNOWN, bytes, count, jobLink, named, number, rate, shortJob, span } from "./words.js";

export const workers = {
  name: "Workers",
  topics: () => ({ workers: {} }),
  view(heard) {
    const put = heard.workers;
    if (!put?.data) return [heading("Workers"), waiting(put, "workers and clients")];
    const { workers: list, clients } = put.data;
    const clientRows = clientTable(clients ?? [], noneOf(put, "No other client is connected."));
    const workerRows = list.length ? workerTable(list) : null;
    if (workerRows) app.rows = [...workerRows.rows, ...clientRows.rows];
    return [
      heading("Workers", words(put), element("a", { href: "#/tasks" }, "Run times of tasks")),
      unreached(put),
      card("Workers", {}, workerRows?.drawn ?? empty(noneOf(put, "No worker of the task library has reported."))),
      card("Plain clients", { note: some(put.data) }, clientRows.drawn),
    ];
  },
};

const some = ({ clients, clients_total: total, clients_own: own = 0 }) =>
  [
    total > clients.length + own && `the first ${number(clients.length)} of ${number(total - own)}`,
    own > 0 && `besides ${count(own, "connection")} of workers and of the console`,
  ].filter(Boolean).join(", ");

const words = (put) => {
  const { workers: list, clients = [] } = put.data;
  const live = list.filter((worker) => worker.state === "live").length;
  const text = `${atLeast(put, live, "live worker")}, ${atLeast(put, clients.length, "client")}`;
  return live ? text : noneOf(put, text);
};

function workerTable(list) {
  const drawn = table({
    caption: "Workers",
    rows: list,
    rowOf: (worker) => ({
      key: `worker ${worker.control ?? worker.name}`,
      title: `worker ${worker.name}`,
      link: worker.running[0] ? jobLink(worker.running[0].id) : null,
      actions: isAway(worker) ? [] : offered("workers", { worker: worker.control }, worker.name, [worker.does]),
    }),
    columns: [
      { label: "worker", class: "names", cell: (worker) => named(worker.name) },
      { label: "state", cell: (worker) => [state(worker.state, worker.why), doing(worker)] },
      { label: "node", cell: (worker) => (worker.node ? named(nodeName(worker.node)) : UNKNOWN) },
      { label: "queues", class: "names", cell: (worker) => named(worker.queues.join(" ")) },
      { label: "slots", cell: slots },
      { label: "works on", cell: running },
      { label: "last report", isNumber: true, cell: (worker) => (worker.beat_s === null ? UNKNOWN : `${span(worker.beat_s)} ago`) },
      { label: "taken/s", isNumber: true, cell: (worker) => rate(isAway(worker) ? null : worker.taken_s) },
      { label: "memory", isNumber: true, cell: (worker) => bytes(worker.rss) },
    ],
  });
  return { drawn, rows: app.rows };
}

// What it has been told to do, where that is not just to run.
const doing = ({ does, state: word }) =>
  does && does !== "running" && !isAway({ state: word }) && [" ", badge(does, "warn")];

// What it last reported is no news then.
const isAway = ({ state: word }) => word === "gone" || word === "unknown";

function slots({ busy, slots: all, state: word }) {
  if (isAway({ state: word }) || typeof all !== "number" || typeof busy !== "number") return UNKNOWN;
  if (all > 12) return `${busy} of ${all}`;
  const dots = Array.from({ length: all }, (_, n) =>
    shape("rect", { class: n < busy ? "part" : "rest", x: n * 7, width: 5, height: 10, rx: 1.5 }),
  );
  const width = all * 7;
  return element(
    "span",
    { class: "slots", title: `${busy} of ${all} are busy` },
    shape("svg", { class: "bar", viewBox: `0 0 ${width} 10`, width, height: 10, "aria-hidden": "true" }, dots),
    ` ${busy}/${all}`,
  );
}

function running({ running: jobs, state: word }) {
  if (isAway({ state: word })) return UNKNOWN;
  if (!jobs.length) return element("span", { class: "quiet" }, "nothing");
  const [{ id, task, since_s: since }] = jobs;
  const others = jobs.length > 1 ? ` and ${jobs.length - 1} more` : "";
  const title = jobs.map((one) => `${one.task ?? ""} ${one.id} for ${span(one.since_s)}`).join("\n");
  return element(
    "span",
    { title },
    element("a", { href: jobLink(id) }, named(task || shortJob(id))),
    element("span", { class: "small" }, ` for ${span(since)}${others}`),
  );
}

function clientTable(clients, none) {
  const drawn = table({
    caption: "Plain clients",
    rows: clients,
    rowOf: (client) => ({
      key: `client ${client.node} ${client.id}`,
      title: `client ${client.name || client.address}`,
      link: null,
      actions: offered("nodes", { node: client.node, client: client.id }, client.name || client.address),
    }),
    columns: [
      { label: "client", class: "names", cell: (client) => (client.name ? named(client.name) : element("span", { class: "quiet" }, client.library ? named(client.library) : "no name")) },
      { label: "address", cell: (client) => element("code", {}, client.address) },
      { label: "node", cell: (client) => named(nodeName(client.node)) },
      { label: "idle", isNumber: true, cell: (client) => span(client.idle_s) },
      { label: "last command", cell: (client) => (client.command ? element("code", {}, client.command) : UNKNOWN) },
    ],
    none,
  });
  return { drawn, rows: app.rows };
}


