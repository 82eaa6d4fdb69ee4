// Page 1: what is wrong, how much moves, and each node in a line.

import { amend, nodeName } from "./app.js";
import { chart, shown, sparkline } from "./chart.js";
import { element } from "./elements.js";
import { asKnown, asLast, card, findings, heading, share, state, tile, unreached, waiting } from "./parts.js";
import { table } from "./table.js";
import { ofNode } from "./operations.js";
import { UNKNOWN, clock, count, named, number, rate, span, visible } from "./words.js";

export const overview = {
  name: "Overview",
  topics: ({ args }) => ({ overview: {}, history: { span: args.span === "day" ? "day" : "hour" } }),
  view(heard, { args }) {
    const put = heard.overview;
    if (!put?.data) return [heading("Overview"), waiting(put, "their state")];
    const { totals, series, nodes } = put.data;
    return [
      heading("Overview", ofHowMany(nodes)),
      unreached(put, asLast),
      card("Findings", { class: "card flat" }, findings(put.data.findings)),
      element("div", { class: "tiles" }, tiles(put.data, Object.keys(put.unreached ?? {}).length)),
      spans(args),
      element("div", { class: "charts" }, charts(series, heard.history?.data, SPANS[args.span] ?? SPANS[""])),
      card("Nodes", {}, nodeTable(nodes)),
    ];
  },
};

function ofHowMany(nodes) {
  const up = nodes.filter((node) => node.state !== "silent").length;
  if (up === nodes.length) return up === 1 ? "1 node answers" : `${up} nodes answer`;
  return up ? `${up} of ${count(nodes.length, "node")} answer; rates are theirs` : "No node answers.";
}

function tiles({ totals, series, nodes, is_counting: isCounting, uncounted = [], dead_is_least: isLeast, delayed_is_most: isMost }, silent) {
  // Sums lack the nodes that are missing: what they have may come on top.
  const least = (missing, value) => (missing && value !== null ? `≥${number(value)}` : number(value));
  const of = (missing) => (missing ? `of ${nodes.length - missing} of ${count(nodes.length, "node")}` : "");
  const counted = { note: [isCounting && "still counting", of(uncounted.length)].filter(Boolean).join(", ") };
  const spark = (name, colour) => series && sparkline(series.at, series[name] ?? [], colour);
  const warned = (value) => ({ level: value ? "warn" : "" });
  return [
    tile("added/s", rate(totals.added_s), {}, spark("added_s", "added")),
    tile("delivered/s", rate(totals.delivered_s), {}, spark("delivered_s", "delivered")),
    tile("acknowledged/s", rate(totals.acked_s), {}, spark("acked_s", "acked")),
    tile("requeued/s", rate(totals.again_s), warned(totals.again_s >= 1)),
    tile("queued", least(uncounted.length, totals.queued), { link: "#/queues", ...counted }, spark("queued", "queued")),
    tile("leased", least(uncounted.length, totals.leased), { link: "#/workers", ...counted }),
    tile("delayed", isMost && totals.delayed !== null ? `${silent ? "≈" : "≤"}${number(totals.delayed)}` : least(silent, totals.delayed), { link: "#/later", note: of(silent) }),
    tile("dead", least(uncounted.length || isLeast, totals.dead), { link: "#/dead", note: of(uncounted.length), ...warned(totals.dead) }),
    tile("too few replicas", least(silent, totals.under_replicated), { note: of(silent), ...warned(totals.under_replicated) }),
  ];
}

// By its word in the address: its label, its seconds, and how far apart nodes keep samples for it.
const SPANS = { "": ["5 min", 300, 10], hour: ["1 h", 3600, 10], day: ["1 d", 86_400, 300] };

function spans({ span: chosen = "" }) {
  const button = ([name, [label]]) =>
    element("button", { "aria-pressed": String(name === chosen), click: () => amend({ span: name }) }, label);
  return element("div", { class: "segments", role: "group", "aria-label": "Time of the charts" }, Object.entries(SPANS).map(button));
}

// What was seen, and what the nodes have kept of the time when nobody looked.
function whole(live, past, [, seconds, period]) {
  const seen = seconds === 300 ? (live?.at ?? []).map((at, n) => [at, live, n]) : [];
  const isSeen = (at) => seen.some(([other]) => Math.abs(other - at) < period);
  const kept = past.at.map((at, n) => [at, past, n]).filter(([at]) => at >= past.at.at(-1) - seconds && !isSeen(at));
  const points = [...seen, ...kept].sort(([one], [other]) => one - other);
  return Object.fromEntries(["at", "added_s", "delivered_s", "acked_s", "queued", "again_s", "refused_s", "wait_ms"].map((name) => [name, points.map(([, of, n]) => of[name]?.[n] ?? null)]));
}

function charts(live, past, shownTime) {
  const [, seconds, period] = shownTime;
  const isKept = past?.period === period && past.at.length > 0;
  const series = isKept ? whole(live, past, shownTime) : live;
  if (!series?.at.length) return [];
  const marks = (past?.marks ?? []).map((mark) => ({ ...mark, words: visible(HAPPENED[mark.kind]?.(nodeName(mark.node), mark.what) ?? mark.kind) }));
  const line = (label, name, colour) => ({ label, values: series[name] ?? [], colour });
  const time = { at: series.at, seconds, period, marks };
  return [
    card(
      "Rates",
      {},
      chart({
        title: "Jobs per second",
        ...time,
        series: [
          line("added", "added_s", "added"),
          line("delivered", "delivered_s", "delivered"),
          line("acknowledged", "acked_s", "acked"),
        ],
        unit: "/s",
      }),
    ),
    card(
      "Queued",
      {},
      chart({ title: "Jobs in queues", ...time, series: [line("queued", "queued", "queued")] }),
    ),
    isKept && seconds > 300 && card(
      "Trouble",
      {},
      chart({
        title: "Per second",
        ...time,
        series: [line("requeued", "again_s", "dead"), line("refused", "refused_s", "refused")],
        unit: "/s",
      }),
    ),
    isKept && seconds > 300 && card("Wait", {}, chart({ title: "Mean time from due to delivered", ...time, series: [{ ...line("wait", "wait_ms", "acked"), values: series.wait_ms.map((ms) => ms && ms / 1000) }], unit: "s" })),
    happened(shown(marks, series.at, seconds)),
  ];
}

// What nodes keep of the time of the charts (`driver/history.py`), in words.
const HAPPENED = {
  start: (node) => `${node} started`,
  failed: (_node, what) => `${what} failed`,
  back: (_node, what) => `${what} is back`,
  late: (node, what) => `${node} did not run for ${what}`,
  leaving: (node) => `${node} leaves`,
  paused: (_node, what) => `${what} ${what === "1" ? "queue is" : "queues are"} paused`,
  done: (_node, what) => what,
  order: (_node, what) => `operation on worker ${what}`,
};
const MARKS_MOST = 12;

// The stalls of a node are one line, at the time of the last one.
function folded(marks) {
  const stalls = Map.groupBy(marks.filter(({ kind }) => kind === "late"), ({ node }) => node);
  return marks.flatMap((mark) => {
    const all = mark.kind === "late" ? stalls.get(mark.node) : [mark];
    if (mark !== all.at(-1)) return [];
    const longest = Math.max(...all.map(({ what }) => parseFloat(what)));
    return [all.length > 1 ? { ...mark, words: `${visible(nodeName(mark.node))} did not run ${number(all.length)} times, up to ${longest} s` } : mark];
  });
}

function happened(all) {
  const marks = folded(all);
  if (!marks.length) return null;
  const late = marks.slice(-MARKS_MOST);
  const begun = marks.some(({ kind }) => kind === "start") && "nodes have no figures from before their start";
  const note = late.length < marks.length ? `the last ${late.length} of ${marks.length} marks` : "marks in the charts";
  const line = ({ at, kind, words }) => element("li", {}, element("span", { class: `mark ${kind}`, "aria-hidden": "true" }), element("span", { class: "small" }, clock(at * 1000)), " ", element("bdi", {}, words));
  return card("What happened", { note: [note, begun].filter(Boolean).join("; ") }, element("ul", { class: "marks" }, late.map(line)));
}

const JOURNALS = { off: "off", ok: "ok", broken: "broken" };

export function nodeTable(nodes) {
  const figure = (label, name, words = number, title = null) => ({
    label,
    title,
    isNumber: true,
    cell: (row) => asKnown(row, words(row[name])),
  });
  return table({
    caption: "Nodes of the cluster",
    rows: nodes,
    rowOf: (row) => ({
      key: row.node,
      title: `node ${row.name || row.node}`,
      link: "#/cluster",
      actions: ofNode(row),
    }),
    columns: [
      { label: "node", cell: (row) => named(nodeName(row.node)) },
      { label: "state", cell: (row) => [state(row.state, row.why), why(row)] },
      figure("jobs", "jobs", number, "replicas at the node"),
      figure("queued", "queued"),
      { label: "memory", cell: (row) => asKnown(row, share(row.memory, row.maxmemory)) },
      figure("clients", "clients"),
      figure("waiting", "waiting", number, "clients that wait for a job"),
      figure("added/s", "added_s", rate),
      figure("delivered/s", "delivered_s", rate),
      figure("commands/s", "commands_s", rate),
      { label: "journal", cell: (row) => asKnown(row, journal(row.journal)) },
      figure("up for", "uptime_s", span),
    ],
    none: "No node is known.",
  });
}

const why = (row) => row.why && element("span", { class: "why small" }, ` ${row.why}`);

function journal(word) {
  if (word === "broken") return element("span", { class: "bad-text" }, "✖ broken");
  return JOURNALS[word] ?? word ?? UNKNOWN;
}
