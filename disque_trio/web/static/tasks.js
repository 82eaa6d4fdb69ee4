// How long tasks run, and the jobs that run longest now.

import { app } from "./app.js";
import { element } from "./elements.js";
import { jobsLink } from "./jobs.js";
import { ofJob } from "./operations.js";
import { atLeast, card, heading, noneOf, unreached, waiting } from "./parts.js";
import { table } from "./table.js";
import { UNKNOWN, jobLink, named, number, shortJob, span } from "./words.js";

export const tasks = {
  name: "Tasks",
  under: "workers",
  topics: () => ({ tasks: {} }),
  view(heard, { args }) {
    const put = heard.tasks;
    if (!put?.data) return [heading("Tasks"), waiting(put, "how long tasks run")];
    const { tasks: rows, running, window_s: window } = put.data;
    const times = timesTable(rows, args, noneOf(put, "No worker has reported a run. Workers report every ten seconds."));
    const timesRows = app.rows;
    const slowest = runningTable(running, noneOf(put, "No job is running."));
    app.rows = [...timesRows, ...app.rows];
    return [
      heading("Tasks", `${atLeast(put, rows.length, "task")}, ${atLeast(put, running.length, "running job")}`, element("a", { href: "#/workers" }, "Workers")),
      unreached(put),
      card("Run times", { note: `of jobs that ended in the last ${span(window / 2)} to ${span(window)}` }, times),
      card("Running longest", {}, slowest),
    ];
  },
};

// Times from microseconds to hours.
export function time(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds >= 10) return span(seconds);
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  const millis = seconds * 1000;
  return `${millis >= 10 ? Math.round(millis) : millis.toPrecision(2)} ms`;
}

const share = ({ runs, failures }) =>
  failures ? element("span", { class: "warn-text" }, `${number(failures)} (${Math.max(1, Math.round((100 * failures) / runs))} %)`) : number(failures);

function timesTable(rows, args, none) {
  const by = args.sort ?? "p95_s";
  const isDown = args.desc ? args.desc === "true" : by !== "task";
  // A job that still runs takes at least as long as it has run.
  const value = (row) => (by === "p95_s" ? Math.max(row.p95_s ?? 0, row.longest_s ?? 0) : (row[by] ?? 0));
  const order = (a, b) => (by === "task" ? a.task.localeCompare(b.task) : value(a) - value(b)) * (isDown ? -1 : 1);
  const figure = (label, name, words, title = null) => ({ label, title, sort: name, isNumber: true, cell: (row) => words(row[name]) });
  const took = (label, name, title = null) => ({ ...figure(label, name, time, title), cell: (row) => (row.runs || row.longest_s == null ? time(row[name]) : `≥ ${time(row.longest_s)}`) });
  return table({
    caption: "Run times of tasks",
    rows: [...rows].sort(order),
    rowOf: ({ task }) => ({ key: `task ${task}`, title: `task ${task}`, link: jobsLink({ task }), actions: [] }),
    sort: { by, isDown },
    columns: [
      { label: "task", sort: "task", class: "names", cell: ({ task }) => element("a", { href: jobsLink({ task }), tabindex: "-1" }, named(task)) },
      figure("runs", "runs", number, "that have ended"),
      { label: "failed", sort: "failures", isNumber: true, cell: share },
      took("mean", "mean_s"),
      took("p50", "p50_s", "half of the runs took at most this time"),
      took("p95", "p95_s", "95 % of the runs took at most this time"),
      took("p99", "p99_s", "99 % of the runs took at most this time"),
      { label: "running", sort: "running", isNumber: true, cell: (row) => [number(row.running), row.runs > 0 && row.longest_s > row.p95_s && element("span", { class: "small" }, `, for ${time(row.longest_s)}`)] },
      figure("workers", "workers", number, "that have run it"),
    ],
    none,
  });
}

function runningTable(rows, none) {
  return table({
    caption: "Jobs that run longest",
    rows,
    rowOf: ({ id }) => ({ key: id, title: shortJob(id), link: jobLink(id), actions: ofJob(id, ["active", "running"]) }),
    columns: [
      { label: "job", cell: ({ id }) => element("a", { href: jobLink(id), tabindex: "-1" }, element("code", { title: id }, shortJob(id))) },
      { label: "task", class: "names", cell: ({ task }) => (task ? named(task) : UNKNOWN) },
      { label: "queue", class: "names", cell: ({ queue }) => named(queue) },
      { label: "runs for", isNumber: true, cell: ({ since_s: since }) => time(since) },
      { label: "lease left", isNumber: true, cell: ({ lease_s: left }) => (left === null ? "no lease" : time(left)) },
      { label: "worker", class: "names", cell: ({ worker }) => named(worker) },
    ],
    none,
  });
}
