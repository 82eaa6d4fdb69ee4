// Page 6: dead jobs, by queue and reason.

import { amend, app } from "./app.js";
import { element, shape } from "./elements.js";
import { body, buttons, card, empty, heading, unreached, waiting } from "./parts.js";
import { ofJob, offered } from "./operations.js";
import { table } from "./table.js";
import { UNKNOWN, clock, count, inOrAgo, jobLink, named, number, queueLink, shortJob, visible } from "./words.js";

export const dead = {
  name: "Dead",
  topics: ({ args }) => ({ dead: { queue: args.queue ?? "" } }),
  view(heard, { args }) {
    const put = heard.dead;
    if (!put?.data) return [heading("Dead jobs"), waiting(put, "their dead jobs")];
    const { total, queues, jobs } = put.data;
    const note = `${count(total, "dead job")} in ${count(queues.length, "queue")}`;
    if (!queues.length && !jobs.length) {
      return [heading("Dead jobs"), unreached(put), empty("No job is dead.")];
    }
    return [
      heading("Dead jobs", note),
      unreached(put),
      element("div", { class: "groups" }, queues.map((group) => groupCard(group, args))),
      card("Jobs", { note: args.queue ? all(args.queue) : null }, list(jobs)),
    ];
  },
};

const all = (queue) => [
  "only those of ",
  element("b", {}, named(queue)),
  " ",
  element("button", { click: () => amend({ queue: "" }) }, "all queues"),
];

function groupCard({ queue, queue_b64: coded, dead: many, reasons }, { queue: chosen }) {
  const name = coded ? { queue_b64: coded } : { queue };
  const most = Math.max(1, ...reasons.map(({ count: times }) => times));
  const line = ({ reason, count: times }) =>
    element(
      "li",
      {},
      shape(
        "svg",
        { class: "bar wide bad", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
        shape("rect", { class: "rest", width: 100, height: 6 }),
        shape("rect", { class: "part", width: Math.max(1, (100 * times) / most), height: 6 }),
      ),
      element("b", {}, number(times)),
      " ",
      named(reason || "no reason given"),
      " ",
      reason && buttons(offered("queues", { ...name, reason }, visible(reason), ["dead"])),
    );
  return element(
    "section",
    { class: "card", key: queue, "aria-label": `Queue ${visible(queue)}` },
    element(
      "div",
      { class: "card-head" },
      element("h2", {}, element("a", { href: queueLink({ name: queue }) }, named(queue))),
      element("span", { class: "note" }, number(many)),
      element(
        "span",
        { class: "tools" },
        queue !== chosen && element("button", { click: () => amend({ queue }) }, "Show"),
        buttons(offered("queues", { ...name, reason: "" }, visible(queue), ["dead"])),
      ),
    ),
    element("ul", { class: "reasons" }, reasons.map(line)),
  );
}

function list(jobs) {
  return table({
    caption: "Dead jobs",
    rows: jobs,
    rowOf: (job) => ({
      key: job.id,
      title: shortJob(job.id),
      link: jobLink(job.id),
      actions: ofJob(job.id, ["dead"]),
    }),
    columns: [
      { label: "job", cell: (job) => element("a", { href: jobLink(job.id), tabindex: "-1" }, element("code", { title: job.id }, shortJob(job.id))) },
      { label: "queue", class: "names", cell: (job) => named(job.queue) },
      { label: "reason", class: "names", cell: (job) => (job.reason ? named(job.reason) : UNKNOWN) },
      { label: "task", cell: (job) => (job.task ? named(job.task) : UNKNOWN) },
      { label: "added", isNumber: true, cell: (job) => element("span", { title: clock(job.added_ms) }, inOrAgo(job.added_ms)) },
      { label: "delivered again", isNumber: true, cell: (job) => number(job.deliveries) },
      { label: "given back", isNumber: true, cell: (job) => number(job.nacks) },
      { label: "body", class: "bodies", cell: (job) => body(job) },
    ],
    none: app.route.args.queue ? "None in this queue." : "None.",
  });
}
