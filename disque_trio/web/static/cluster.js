// Page 2: who sees whom, and what each node says of itself.

import { app, nodeName } from "./app.js";
import { element } from "./elements.js";
import { asKnown, buttons, card, heading, share, sign, state, unreached, waiting } from "./parts.js";
import { table } from "./table.js";
import { offered, ofNode } from "./operations.js";
import { UNKNOWN, named, number, sentence, span } from "./words.js";

export const cluster = {
  name: "Cluster",
  topics: () => ({ cluster: {} }),
  view(heard) {
    const put = heard.cluster;
    if (!put?.data) return [heading("Cluster"), waiting(put, "their views")];
    app.actions = offered("nodes", {}, "the cluster");
    const { nodes, sees } = put.data;
    return [
      heading("Cluster", versions(nodes), ...buttons(app.actions), app.hello?.role === "admin" && element("a", { href: "#/audit" }, "Audit log")),
      unreached(put, () => "Its last known figures are grey."),
      card(
        "Who sees whom",
        { note: "A row shows how its node sees the others. Pairs of nodes that disagree are marked." },
        element("div", { class: "seen" }, matrix(nodes, sees), inWords(nodes, sees)),
      ),
      card("Nodes", {}, details(nodes)),
    ];
  },
};

function versions(nodes) {
  const known = [...new Set(nodes.map(({ version }) => version).filter(Boolean))];
  if (!known.length) return null;
  return known.length === 1 ? `All run version ${known[0]}.` : `Versions: ${known.join(", ")}.`;
}

const MARKS = {
  up: ["●", "good"],
  suspect: ["◐", "warn"],
  failed: ["✖", "bad"],
  unknown: ["?", "quiet"],
};

function matrix(nodes, sees) {
  const seen = new Map(sees.map(([from, to, word]) => [`${from} ${to}`, word]));
  const view = (from, to) => seen.get(`${from} ${to}`) ?? "unknown";
  const differs = (from, to) => {
    const [there, back] = [view(from, to), view(to, from)];
    return there !== back && there !== "unknown" && back !== "unknown";
  };
  const cell = (from, to) => {
    if (from === to) return element("td", { class: "self" }, element("span", { "aria-label": "itself" }, "·"));
    const word = view(from, to);
    const [mark, level] = MARKS[word] ?? MARKS.unknown;
    const isOneWay = differs(from, to);
    const says = `${nodeName(from)} sees ${nodeName(to)}: ${word}${isOneWay ? ", which sees it differently" : ""}`;
    return element(
      "td",
      { class: `${level} ${isOneWay ? "differs" : ""}`, title: says },
      element("span", { "aria-hidden": "true" }, mark),
      element("span", { class: "unseen" }, isOneWay ? `${word}, seen differently` : word),
    );
  };
  const heads = nodes.map(({ node }) => element("th", { scope: "col" }, named(nodeName(node))));
  const rows = nodes.map(({ node }) =>
    element(
      "tr",
      { key: node },
      element("th", { scope: "row" }, named(nodeName(node))),
      nodes.map((other) => cell(node, other.node)),
    ),
  );
  const key = Object.entries(MARKS).map(([word, [mark, level]]) =>
    element("span", { class: `entry ${level}-text` }, element("span", { "aria-hidden": "true" }, mark), ` ${word}`),
  );
  return element(
    "div",
    {},
    element(
      "div",
      { class: "table matrix", tabindex: "0", role: "region", "aria-label": "Who sees whom" },
      element(
        "table",
        {},
        element("caption", { class: "unseen" }, "Who sees whom"),
        element("thead", {}, element("tr", {}, element("td", {}), heads)),
        element("tbody", {}, rows),
      ),
    ),
    element("p", { class: "key small" }, key),
  );
}

// Who is not seen as up by everybody, and by whom.
function inWords(nodes, sees) {
  const doubts = nodes.flatMap(({ node }) => {
    const said = sees.filter(([, to, word]) => to === node && ["suspect", "failed"].includes(word));
    const parts = said.map(([from, , word]) => `${word} for ${nodeName(from)}`);
    const level = said.some(([, , word]) => word === "failed") ? "bad" : "warn";
    return parts.length ? [[level, `${nodeName(node)}: ${parts.join(", ")}`]] : [];
  });
  if (!doubts.length) return null;
  const line = ([level, text]) => element("li", { class: level }, sign(level), element("span", {}, sentence(text)));
  return element("ul", { class: "findings words" }, doubts.map(line));
}

function details(nodes) {
  const clocks = nodes.filter(({ state: word, clock_ms: ms }) => word !== "silent" && ms !== null).map(({ clock_ms: ms }) => ms).sort((a, b) => a - b);
  const middle = clocks[clocks.length >> 1] ?? 0; // this machine's clock is none of theirs
  const known = (label, words, more = {}) => ({ label, cell: (row) => asKnown(row, words(row)), ...more });
  return table({
    caption: "Reports of the nodes about themselves",
    rows: nodes,
    rowOf: (row) => ({
      key: row.node,
      title: `node ${row.name || row.node}`,
      link: null,
      actions: ofNode(row),
    }),
    columns: [
      { label: "node", cell: (row) => named(nodeName(row.node)) },
      { label: "state", cell: (row) => state(row.state, row.why) },
      { label: "address", cell: (row) => element("code", {}, row.node) },
      ...zone(nodes),
      { label: "id", cell: (row) => element("code", { title: row.id }, row.id?.slice(0, 8) || UNKNOWN) },
      known("version", (row) => row.version || UNKNOWN),
      known("up for", (row) => span(row.uptime_s), { isNumber: true }),
      known("memory", (row) => share(row.memory, row.maxmemory)),
      known("too few replicas", (row) => number(row.under_replicated), { isNumber: true }),
      known("clock", (row) => offset(row.clock_ms, middle), { isNumber: true, title: "difference from the median of the nodes' clocks" }),
    ],
  });
}

// Nothing if no node names one.
const zone = (nodes) =>
  nodes.some((node) => node.zone)
    ? [{ label: "zone", title: "nodes of a zone fail together", cell: (row) => named(row.zone || UNKNOWN) }]
    : [];

function offset(clock, middle) {
  if (clock === null || clock === undefined) return UNKNOWN;
  const millis = Math.round(clock - middle);
  const sign = millis > 0 ? "+" : millis < 0 ? "−" : "";
  const text = sign + (Math.abs(millis) < 10_000 ? `${number(Math.abs(millis))} ms` : span(Math.round(Math.abs(millis) / 1000)));
  return Math.abs(millis) > 500 ? element("span", { class: "warn-text" }, `▲ ${text}`) : text;
}
