// Page 3: the queues, sorted, filtered and paged where they are counted.

import { amend, app, nodeName, nodes, redraw } from "./app.js";
import { element } from "./elements.js";
import { asLast, badge, buttons, heading, unreached, waiting, where } from "./parts.js";
import { table } from "./table.js";
import { offered, ofQueue } from "./operations.js";
import { viewBar } from "./views.js";
import { nameWords, named, number, queueLink, rate, span } from "./words.js";

const ONLY = [
  ["", "all"],
  ["stuck", "stuck: no consumers"],
  ["paused", "paused"],
  ["dead", "with dead jobs"],
  ["limited", "with limits"],
];
const STOPPED = { out: "deliveries paused", in: "new jobs refused", all: "paused both ways" };
const TYPING_MS = 250;
let typing = null;

export const queues = {
  name: "Queues",
  topics: ({ args }) => ({
    queues: {
      sort: args.sort ?? "jobs",
      desc: isDown(args),
      match: args.match ?? "",
      only: args.only ?? "",
      page: Number(args.page ?? 0),
    },
  }),
  view(heard, { args }) {
    const put = heard.queues;
    app.actions = offered("queues", {}, "");
    const search = [heading("Queues", counted(put?.data), ...buttons(app.actions)), viewBar("queues"), tools(args)];
    if (!put?.data) return [...search, waiting(put, "their queues")];
    return [...search, unreached(put, asLast), list(put.data, args, Object.keys(put.unreached ?? {}).length > 0), pager(put.data)];
  },
};

const isDown = ({ sort = "jobs", desc }) => (desc ? desc === "true" : sort !== "name");

const counted = (data) =>
  data && `${number(data.total)} ${data.total === 1 ? "queue" : "queues"}, 100 per page`;

function tools(args) {
  const input = (event) => {
    const match = event.target.value;
    clearTimeout(typing);
    typing = setTimeout(() => app.route.page === "queues" && amend({ match, page: "" }), TYPING_MS);
  };
  const only = args.only ?? "";
  return element(
    "div",
    { class: "toolbar" },
    element("input", {
      id: "find",
      type: "search",
      "aria-label": "Find queues",
      placeholder: "find: text, or a pattern such as mail* ( / )",
      value: args.match ?? "",
      spellcheck: "false",
      input,
    }),
    element(
      "div",
      { class: "segments", role: "group", "aria-label": "Which queues" },
      ONLY.map(([name, words]) =>
        element(
          "button",
          { "aria-pressed": String(name === only), click: () => amend({ only: name, page: "" }) },
          words,
        ),
      ),
    ),
    chosenNote(),
  );
}

function chosenNote() {
  if (!app.chosen.size) return null;
  const clear = () => {
    app.chosen.clear();
    redraw();
  };
  return element(
    "span",
    { class: "note" },
    `${app.chosen.size} selected `,
    element("button", { click: clear }, "clear"),
  );
}

function list({ rows }, args, isPartial) {
  const figure = (label, name, words = number, sort = null, title = null) => ({
    label,
    title,
    sort,
    isNumber: true,
    cell: (row) => words(row[name]),
  });
  return element(
    "section",
    { class: "card" },
    table({
      caption: "Queues",
      rows,
      rowOf: (row) => ({
        key: row.name_b64 ?? row.name,
        title: `queue ${nameWords(row)}`,
        link: queueLink(row),
        actions: ofQueue(row),
      }),
      sort: { by: args.sort ?? "jobs", isDown: isDown(args) },
      columns: [
        { label: "name", sort: "name", class: "names badged", cell: (row) => [link(row), paused(row)] },
        figure("jobs", "jobs", number, "jobs"),
        { label: "where", cell: (row) => where(row.where) },
        figure("oldest", "age_s", span, "age", "how long the first job has waited"),
        figure("in/s", "in_s", rate, "in"),
        figure("out/s", "out_s", rate, "out"),
        { ...figure("leased", "leased"), needs: "leased" },
        { label: "delayed", isNumber: true, needs: "delayed", cell: delayedCount },
        { label: "restored", isNumber: true, needs: "restored", title: "wait for the end of RETRY after a restart", cell: restoredCount },
        { label: "dead", isNumber: true, cell: dead, needs: "dead" },
        { label: "consumers", sort: "waiting", isNumber: true, title: "clients that wait for its jobs", cell: takers },
        { label: "limits", class: "wraps", cell: limits, needs: "limits" },
      ],
      none: args.match || args.only ? noneLike(args) : isPartial ? "The nodes that answer have no queue." : "No queue has been used yet.",
    }),
  );
}

// A cluster with very many queues is not counted at once: what is named exactly can be opened.
const noneLike = ({ match }) => [
  "No queue that was counted so far. ",
  match && element("a", { href: queueLink({ name: match }) }, "Open the queue ", named(match)),
];

const link = (row) => element("a", { href: queueLink(row), tabindex: "-1" }, named(nameWords(row)));

// Each node counts what it will queue: after a fault several may count one job.
export const delayedCount = (row) => `${row.delayed_is_most ? "≤" : ""}${number(row.delayed)}`;

export const restoredCount = (row) => `${row.restored_is_least ? "≥" : ""}${number(row.restored)}`;

export const deadCount = (row) => `${row.dead_is_least ? "≥" : ""}${number(row.dead)}`;

const dead = (row) => (row.dead ? element("span", { class: "warn-text" }, deadCount(row)) : number(row.dead));

export function takers(row) {
  const isStuck = row.takers === 0 && row.jobs > 0;
  // Workers that run jobs wait for none.
  const isPaused = Object.values(row.paused ?? {}).some((side) => side === "out" || side === "all");
  if (isStuck && !isPaused && row.served) return element("span", { class: "quiet-text", title: "no client waits: workers run its jobs" }, "busy");
  return isStuck
    ? element("span", { class: "warn-text", title: "jobs, but no consumers" }, "▲ none")
    : number(row.takers);
}

// The limits in the whole cluster, and whether clients wait for them.
export function limits(row) {
  if (!row.limits) return "";
  const waits = row.limited && badge("waits because of its limits", "note", "clients wait for its jobs only because of the limits");
  return [row.limits.text, waits && " ", waits];
}

// How the nodes have it, and whether all have it so.
export function paused(row) {
  const said = Object.entries(row.paused ?? {}).filter(([, mode]) => mode !== "none");
  if (!said.length) return "";
  const everywhere = nodes().length;
  const modes = [...new Set(said.map(([, mode]) => STOPPED[mode] ?? mode))].join(", ");
  const title = said.map(([node, mode]) => `${nodeName(node)}: ${STOPPED[mode] ?? mode}`).join(", ");
  const part = everywhere && said.length < everywhere ? ` at ${said.length} of ${everywhere}` : "";
  return badge(`${modes}${part}`, "warn", title);
}

export const step = (data, by) => {
  const page = data.page + by;
  if (page >= 0 && page < data.pages) amend({ page: page ? String(page) : "" });
};

function pager(data) {
  if (data.pages <= 1) return null;
  const first = data.page * 100 + 1;
  const button = (words, by, key) =>
    element(
      "button",
      { disabled: by < 0 ? data.page === 0 : data.page + 1 >= data.pages, click: () => step(data, by) },
      words,
      " ",
      element("kbd", { "aria-hidden": "true" }, key),
    );
  return element(
    "nav",
    { class: "pager", "aria-label": "Pages of queues" },
    button("Previous", -1, "["),
    element("span", {}, `${number(first)}–${number(first + data.rows.length - 1)} of ${number(data.total)}`),
    button("Next", 1, "]"),
  );
}
