// One queue: how it moves, where its jobs are, the oldest and the youngest of them.

import { app } from "./app.js";
import { chart } from "./chart.js";
import { element } from "./elements.js";
import { asLast, body, buttons, card, facts, heading, noneOf, unreached, waiting, where } from "./parts.js";
import { asNode, jobState, jobsLink } from "./jobs.js";
import { ofJob, ofQueue } from "./operations.js";
import { deadCount, delayedCount, limits, paused, restoredCount, takers } from "./queues.js";
import { table } from "./table.js";
import { clock, fromBase64, inOrAgo, jobLink, named, number, rate, shortJob, span } from "./words.js";

export const queue = {
  name: "Queue",
  under: "queues",
  topics: ({ name, args }) => ({
    queue: {
      ...(args.b64 ? { name_b64: args.b64 } : { name }),
      bodies: app.wants.bodies ?? false,
    },
  }),
  view(heard, { name, args }) {
    const put = heard.queue;
    const title = [element("span", { class: "kind" }, "Queue "), named(args.b64 ? fromBase64(args.b64) : name)];
    if (!put?.data) return [heading(title), waiting(put, "this queue")];
    const found = put.data.queue;
    if (!found) {
      app.actions = ofQueue(args.b64 ? { name, name_b64: args.b64 } : { name }).filter(({ operation }) => operation === "queues add");
      return [heading(title, null, ...buttons(app.actions)), unreached(put, asLast), element("p", { class: "empty" }, noneOf(put, "No node has a queue of this name."))];
    }
    app.actions = ofQueue(found);
    return [
      heading(title, paused(found), ...buttons(app.actions)),
      unreached(put, asLast),
      summary(found),
      element("div", { class: "charts" }, charts(put.data.series)),
      lists(put.data),
    ];
  },
};

function summary(found) {
  return element(
    "section",
    { class: "card" },
    facts([
      ["jobs", number(found.jobs)],
      ["oldest waits", span(found.age_s)],
      ["in/s", rate(found.in_s)],
      ["out/s", rate(found.out_s)],
      ["leased", number(found.leased)],
      ["delayed", found.delayed_due_s == null ? delayedCount(found) : `${delayedCount(found)}, the next in ${span(found.delayed_due_s)}`],
      found.restored ? ["wait after a restart", `${restoredCount(found)}, the next in ${span(found.restored_due_s)}`] : null,
      ["dead", found.dead ? element("a", { href: `#/dead?${new URLSearchParams(found.name_b64 ? { queue_b64: found.name_b64 } : { queue: found.name })}` }, deadCount(found)) : number(found.dead)],
      ["consumers", takers(found)],
      found.limits ? ["limits", limits(found)] : null,
      ["where", where(found.where)],
    ]),
  );
}

function charts(series) {
  if (!series?.at.length) return [];
  const line = (label, name, colour) => ({ label, values: series[name] ?? [], colour });
  return [
    card("Queued", {}, chart({ title: "Jobs in the queue", at: series.at, series: [line("jobs", "jobs", "queued")] })),
    card(
      "Rates",
      {},
      chart({
        title: "Jobs per second",
        at: series.at,
        series: [line("in", "in_s", "added"), line("out", "out_s", "delivered")],
        unit: "/s",
      }),
    ),
  ];
}

const KINDS = [
  ["oldest", "Oldest"],
  ["youngest", "Youngest"],
  ["delayed", "Delayed"],
];

function lists(data) {
  const { name, name_b64: coded } = data.queue;
  const kind = app.wants.kind ?? "oldest";
  const bodies = app.wants.bodies ?? false;
  const want = (changes) => {
    Object.assign(app.wants, changes);
    dispatchEvent(new HashChangeEvent("hashchange"));
  };
  const tabs = KINDS.map(([name, label]) =>
    element(
      "button",
      { "aria-pressed": String(name === kind), click: () => want({ kind: name }) },
      `${label} (${data[name]?.length ?? 0})`,
    ),
  );
  return card(
    "Jobs",
    {
      tools: [
        element("div", { class: "segments", role: "group", "aria-label": "Which jobs" }, tabs),
        element("a", { href: jobsLink(coded ? { queue_b64: coded } : { queue: name }) }, "All jobs"),
        element("button", { "aria-pressed": String(bodies), click: () => want({ bodies: !bodies }) }, "bodies"),
      ],
    },
    jobTable(`${kind} jobs`, data[kind] ?? [], bodies),
  );
}

export function jobTable(caption, jobs, hasBodies) {
  return table({
    caption,
    rows: jobs,
    rowOf: (job) => ({ key: job.id, title: shortJob(job.id), link: jobLink(job.id), actions: ofJob(job.id, [asNode(job.state), job.state]) }),
    columns: [
      { label: "job", cell: (job) => element("a", { href: jobLink(job.id), tabindex: "-1" }, element("code", { title: job.id }, shortJob(job.id))) },
      { label: "state", cell: (job) => jobState(job.state) },
      { label: "added", isNumber: true, cell: (job) => element("span", { title: clock(job.added_ms) }, inOrAgo(job.added_ms)) },
      { label: "redelivered", isNumber: true, cell: (job) => number(job.deliveries) },
      { label: "given back", isNumber: true, cell: (job) => number(job.nacks) },
      { label: "due", needs: "due_ms", isNumber: true, cell: (job) => element("span", { title: clock(job.due_ms) }, inOrAgo(job.due_ms)) },
      { label: "redelivered in", isNumber: true, title: "unless it is acknowledged before that", cell: (job) => (job.state === "queued" || job.due_ms ? "" : span(job.next_s)) },
      ...(hasBodies ? [{ label: "body", class: "bodies", cell: (job) => body(job) }] : []),
    ],
    none: "None here.",
  });
}
