// Page 6: dead jobs of the same queue, task, class of error and place, together.

import { amend } from "./app.js";
import { element } from "./elements.js";
import { atLeast, buttons, card, empty, heading, noneOf, unreached, waiting } from "./parts.js";
import { jobsLink, ofAll } from "./jobs.js";
import { offered } from "./operations.js";
import { table } from "./table.js";
import { UNKNOWN, clock, count, fromBase64, inOrAgo, named, number, queueLink, visible } from "./words.js";

export const dead = {
  name: "Dead",
  topics: ({ args }) => ({ dead: args.queue_b64 ? { queue_b64: args.queue_b64 } : args.queue ? { queue: args.queue } : {} }),
  view(heard, { args }) {
    const put = heard.dead;
    if (!put?.data) return [heading("Dead jobs"), waiting(put, "their dead jobs")];
    const { total, seen, is_cut: isCut, queues, groups, more } = put.data;
    const note = `${atLeast(put, total, "dead job")} in ${count(queues.length, "queue")}`;
    if (!groups.length) {
      return [heading("Dead jobs"), unreached(put), empty(noneOf(put, "No job is dead."))];
    }
    const some = isCut || seen < total ? `of the ${number(seen)} that were read` : null;
    return [
      heading("Dead jobs", note, element("a", { href: jobsLink({ state: "dead" }) }, "All dead jobs")),
      unreached(put),
      card("By error", { note: [some, more ? `and ${number(more)} more kinds` : null].filter(Boolean).join(", ") || null }, groupTable(groups)),
      card("By queue", { note: args.queue_b64 || args.queue ? only(args) : null }, element("ul", { class: "reasons" }, queues.map(queueLine))),
    ];
  },
};

const only = ({ queue, queue_b64: coded }) => [
  "only ",
  element("b", {}, named(coded ? fromBase64(coded) : queue)),
  " ",
  element("button", { click: () => amend({ queue: "", queue_b64: "" }) }, "all queues"),
];

const nameOf = ({ queue, queue_b64: coded }) => (coded ? { queue_b64: coded } : { queue });

function filterOf(group) {
  const { task, error, place } = group;
  const given = { ...nameOf(group), state: "dead", task, error: error === "no reason given" ? "" : error, place };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value));
}

function groupTable(groups) {
  const time = (name) => (group) => element("span", { title: clock(group[name]) }, inOrAgo(group[name]));
  return table({
    caption: "Dead jobs by error",
    rows: groups,
    rowOf: (group) => ({
      key: JSON.stringify(filterOf(group)),
      title: visible(`${group.error} in ${group.queue}`),
      link: jobsLink(filterOf(group)),
      actions: ofAll(filterOf(group), ["dead"]).map((action) => ({ ...action, target: `${group.count} × ${group.error}` })),
    }),
    columns: [
      { label: "error", class: "names", cell: (group) => element("a", { href: jobsLink(filterOf(group)), tabindex: "-1" }, named(group.error)) },
      { label: "jobs", isNumber: true, cell: (group) => number(group.count) },
      { label: "queue", class: "names", cell: (group) => named(group.queue) },
      { label: "task", needs: "task", class: "names", cell: (group) => (group.task ? named(group.task) : UNKNOWN) },
      { label: "place", needs: "place", class: "names", cell: (group) => (group.place ? named(group.place) : "") },
      { label: "most often", class: "bodies wrapped", cell: (group) => (group.message ? [named(group.message), group.messages > 1 && element("span", { class: "small" }, ` and ${count(group.messages - 1, "other")}`)] : "") },
      { label: "first seen", isNumber: true, cell: time("first_ms") },
      { label: "last seen", isNumber: true, cell: time("last_ms") },
    ],
  });
}

function queueLine(row) {
  const { queue, queue_b64: coded, dead: many } = row;
  return element(
    "li",
    { key: coded ?? queue, "aria-label": `Queue ${visible(queue)}` },
    element("b", {}, number(many)),
    element("a", { href: queueLink({ name: queue, name_b64: coded }) }, named(queue)),
    element("span", { class: "tools" }, buttons(offered("queues", { ...nameOf(row), reason: "" }, visible(queue), ["dead"]))),
  );
}
