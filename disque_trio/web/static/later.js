// Page 7: what is due later: delayed jobs and schedules.

import { element, shape } from "./elements.js";
import { app } from "./app.js";
import { atLeast, badge, buttons, card, empty, heading, noneOf, unreached, waiting } from "./parts.js";
import { jobState } from "./jobs.js";
import { ofJob, ofSchedule, offered } from "./operations.js";
import { table } from "./table.js";
import { UNKNOWN, clock, count, inOrAgo, jobLink, named, now, number, shortJob, span } from "./words.js";

const BARS = 60;

export const later = {
  name: "Later",
  topics: () => ({ later: {} }),
  view(heard) {
    const put = heard.later;
    app.actions = offered("schedules", {}, "");
    if (!put?.data) return [heading("Later"), waiting(put, "what is due")];
    const { delayed, delayed_total: total, schedules } = put.data;
    const scheduled = schedules && scheduleTable(schedules);
    const schedulesRows = app.rows;
    const waits = delayed.length ? [bars(delayed), delayedTable(delayed)] : empty(noneOf(put, total ? "No delayed job has been found yet." : "No job is delayed."));
    app.rows = [...(scheduled ? schedulesRows : []), ...(delayed.length ? app.rows : [])];
    return [
      heading("Later", words(put, schedules), ...buttons(app.actions)),
      unreached(put),
      scheduled && card("Schedules", {}, scheduled),
      card(
        "Delayed jobs",
        { note: delayed.length < total ? `the first ${delayed.length} of ${number(total)}` : null },
        waits,
      ),
    ];
  },
};

const words = (put, schedules) =>
  [atLeast(put, put.data.delayed_total ?? 0, "delayed job"), schedules && count(schedules.length, "schedule")].filter(Boolean).join(", ");

// How many of those shown are due in each part of the time until the last one.
function bars(delayed) {
  const last = Math.max(...delayed.map(({ due_ms: due }) => due));
  const length = Math.max(1000, last - now());
  const many = new Array(BARS).fill(0);
  for (const { due_ms: due } of delayed) {
    many[Math.max(0, Math.min(BARS - 1, Math.floor(((due - now()) / length) * BARS)))] += 1;
  }
  const most = Math.max(...many);
  const rects = many.map((times, n) =>
    shape("rect", { class: "queued", x: n * 10, width: 8, rx: 1, y: 60 - (58 * times) / most, height: (58 * times) / most }),
  );
  return element(
    "div",
    { class: "due" },
    shape(
      "svg",
      { viewBox: "0 0 600 60", preserveAspectRatio: "none", role: "img", "aria-label": `When they are due: the last in ${span(Math.round(length / 1000))}` },
      rects,
    ),
    element("div", { class: "axis small" }, element("span", {}, "now"), element("span", {}, `in ${span(Math.round(length / 1000))}`)),
  );
}

function delayedTable(delayed) {
  return table({
    caption: "Delayed jobs, the next first",
    rows: delayed,
    rowOf: (job) => ({
      key: job.id,
      title: shortJob(job.id),
      link: jobLink(job.id),
      actions: ofJob(job.id, ["active"]),
    }),
    columns: [
      { label: "job", cell: (job) => element("a", { href: jobLink(job.id), tabindex: "-1" }, element("code", { title: job.id }, shortJob(job.id))) },
      { label: "queue", class: "names", cell: (job) => named(job.queue) },
      { label: "state", cell: (job) => jobState(job.state) },
      { label: "due", isNumber: true, cell: (job) => inOrAgo(job.due_ms) },
      { label: "at", isNumber: true, cell: (job) => clock(job.due_ms) },
    ],
  });
}

function scheduleTable(schedules) {
  return table({
    caption: "Schedules",
    rows: schedules,
    rowOf: (one) => ({ key: `${one.schedule} ${one.name} ${one.when}`, title: one.schedule || one.name, link: null, actions: ofSchedule(one) }),
    columns: [
      { label: "schedule", class: "names", cell: ({ schedule, state }) => (schedule ? [named(schedule), " ", badge(state)] : element("span", { class: "note" }, "in the code")) },
      { label: "task", class: "names", cell: ({ name }) => named(name) },
      { label: "queue", class: "names", cell: ({ queue }) => (queue ? named(queue) : UNKNOWN) },
      { label: "when", cell: ({ when }) => element("code", {}, when) },
      { label: "next", isNumber: true, cell: (one) => (one.next_ms === null ? UNKNOWN : element("span", { title: clock(one.next_ms) }, inOrAgo(one.next_ms))) },
      { label: "workers", isNumber: true, cell: ({ workers }) => workers },
    ],
    none: "No running worker declares a schedule, and none was added.",
  });
}
