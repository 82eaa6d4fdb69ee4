// Pieces that several pages are made of.

import { app, nodeName, nodeNumber, nodes } from "./app.js";
import { element, shape } from "./elements.js";
import { choices, propose, remedy } from "./operations.js";
import { UNKNOWN, bytes, count, fromBase64, inOrAgo, named, number, sentence } from "./words.js";

export function card(title, properties, ...children) {
  const { note = null, tools = null, ...others } = properties;
  return element(
    "section",
    { class: "card", ...others },
    element(
      "div",
      { class: "card-head" },
      element("h2", {}, title),
      note && element("span", { class: "note" }, note),
      tools && element("span", { class: "tools" }, tools),
    ),
    children,
  );
}

export function heading(title, note, ...tools) {
  return element(
    "div",
    { class: "heading" },
    element("h1", {}, title),
    note && element("p", { class: "note" }, note),
    tools.length > 0 && element("div", { class: "tools" }, tools),
  );
}

// Before the first answer, and where an answer says no.
export function waiting(put, topic = "it") {
  if (put?.error) return unreached(put);
  return element("p", { class: "empty" }, `Asking the nodes for ${topic} …`);
}

export const empty = (text) => element("p", { class: "empty" }, text);

const byName = (one, other) => nodeName(one).localeCompare(nodeName(other));

// Without the answer of a node nobody knows that there is none.
export const noneOf = (put, text) => {
  const missing = Object.keys(put.unreached ?? {}).sort(byName);
  return missing.length ? `Unknown: no answer from ${missing.map(nodeName).join(", ")}.` : text;
};

// A figure that lacks what nodes without an answer know, or what was not looked at.
export const atLeast = (put, many, one) => `${Object.keys(put.unreached ?? {}).length || put.data.is_cut ? "≥" : ""}${count(many, one)}`;

// What a node without an answer was last known to have.
export const asKnown = (row, value) => (row.state === "silent" ? element("span", { class: "quiet" }, value) : value);

const SIGNS = { good: "✓", note: "·", warn: "▲", bad: "✖" };

export function findings(list) {
  if (!list.length) {
    return element(
      "ul",
      { class: "findings" },
      element("li", { class: "good" }, sign("good"), "No problem is known."),
    );
  }
  const order = ["bad", "warn", "good", "note"];
  const sorted = [...list].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
  const line = ({ level, text, link, advice, since }) => {
    const began = typeof since === "number" && element("span", { class: "small" }, ` began ${inOrAgo(since * 1000)}`);
    const said = element("span", {}, sentence(text), began);
    const safe = typeof link === "string" && link.startsWith("#/");
    return element(
      "li",
      { class: level, title: advice || null },
      sign(level),
      safe ? element("a", { href: link }, said) : said,
    );
  };
  return element("ul", { class: "findings" }, sorted.map((each) => [line(each), remedy(each)]));
}

export const sign = (level) =>
  element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[level] ?? "·");

const STATES = {
  up: ["good", "●"],
  silent: ["bad", "✖"],
  failed: ["bad", "✖"],
  suspect: ["warn", "◐"],
  leaving: ["warn", "◐"],
  loading: ["warn", "◌"],
  live: ["good", "●"],
  late: ["warn", "◐"],
  gone: ["bad", "✖"],
};

// A state as a word, a shape and a colour.
export function state(word, why = "") {
  const [level, mark] = STATES[word] ?? ["quiet", "○"];
  return element(
    "span",
    { class: `state ${level}`, title: why || null },
    element("span", { class: "mark", "aria-hidden": "true" }, mark),
    ` ${word}`,
  );
}

// A code with its meaning, under the pointer and by keyboard.
export const code = (text, meaning) =>
  meaning ? element("abbr", { tabindex: "0", "data-means": meaning, "aria-label": `${text}: ${meaning}` }, text) : text;

export const badge = (text, level = "", title = null) =>
  element("span", { class: `badge ${level}`, title }, text);

// Nodes that did not answer, and what that means for what follows.
export function unreached(put, so = () => "The figures below exclude it.") {
  const missing = Object.entries(put?.unreached ?? {}).sort(([one], [other]) => byName(one, other));
  if (!missing.length && !put?.error) return null;
  const line = (...words) => element("li", { class: "bad" }, sign("bad"), element("span", {}, words));
  const known = nodes();
  // Then the error has the reason of each, without its name.
  if (put.error && known.length && known.every(({ state: word }) => word === "silent")) {
    return element("ul", { class: "findings" }, known.map(({ node, why }) => line("No answer from ", named(nodeName(node)), ": ", sentence(why))));
  }
  return element(
    "ul",
    { class: "findings" },
    put.error && line(sentence(put.error)),
    missing.map(([node, why]) =>
      element("li", { class: "warn" }, sign("warn"), element("span", {}, "No answer from ", named(nodeName(node)), ": ", sentence(why.replace(/\.$/, "")), ". ", so(node, put))),
    ),
  );
}

// Of sums over queues (`observe/queue_counts.py`).
export const asLast = (node, put) =>
  put.data?.uncounted?.includes(node)
    ? "Its queues have not been counted: the figures below exclude them."
    : "Its queues count with their last figures, until it has not answered for five minutes.";

// How much of a whole, as a bar with the figure beside it.
export function share(part, whole) {
  if (typeof part !== "number" || typeof whole !== "number" || whole <= 0) return bytes(part);
  const full = Math.min(1, part / whole);
  const level = full >= 0.95 ? "bad" : full >= 0.75 ? "warn" : "";
  return element(
    "span",
    { class: "share", title: `${bytes(part)} of ${bytes(whole)}` },
    shape(
      "svg",
      { class: `bar ${level}`, viewBox: "0 0 48 6", width: 48, height: 6, "aria-hidden": "true" },
      shape("rect", { class: "rest", width: 48, height: 6, rx: 3 }),
      shape("rect", { class: "part", width: Math.max(2, 48 * full), height: 6, rx: 3 }),
    ),
    ` ${Math.round(full * 100)} %`,
  );
}

// Where the jobs of a queue are: one colour for each node, the words in the title.
export function where(byNode) {
  const parts = Object.entries(byNode ?? {}).filter(([, jobs]) => jobs);
  if (!parts.length) return UNKNOWN;
  const whole = parts.reduce((sum, [, jobs]) => sum + Number(jobs), 0);
  parts.sort((a, b) => b[1] - a[1]);
  const words = parts.map(([node, jobs]) => `${nodeName(node)} ${number(jobs)}`).join(" · ");
  let at = 0;
  const rects = parts.map(([node, jobs]) => {
    const width = (64 * Number(jobs)) / whole;
    at += width;
    const colour = nodeNumber(node) % 6;
    return shape("rect", { class: `node-${colour}`, x: at - width, width, height: 8 });
  });
  const svg = shape("svg", { class: "where", viewBox: "0 0 64 8", width: 64, height: 8 }, rects);
  const named = parts.length === 1 ? nodeName(parts[0][0]) : count(parts.length, "node");
  return element(
    "span",
    { class: "where", title: words },
    element("span", { "aria-hidden": "true" }, svg),
    element("span", { class: "small" }, ` ${named}`),
    element("span", { class: "unseen" }, `: ${words}`),
  );
}

export function facts(pairs) {
  return element(
    "dl",
    { class: "facts" },
    pairs
      .filter((pair) => pair)
      .map(([name, value]) =>
        element("div", {}, element("dt", {}, name), element("dd", {}, value ?? UNKNOWN)),
      ),
  );
}

export function tile(name, value, { level = "", note = "", link = null } = {}, ...more) {
  const inner = [
    element("span", { class: "tile-name" }, name),
    element("span", { class: `tile-value ${level}` }, value),
    note && element("span", { class: "tile-note" }, note),
    more,
  ];
  return link
    ? element("a", { class: "tile", href: link }, inner)
    : element("div", { class: "tile" }, inner);
}

// A job's body: as JSON where it is JSON, as it came where not.
export function body(job, isLong = false) {
  if (job.body_b64) return named(fromBase64(job.body_b64), { class: "body" });
  if (job.body === null || job.body === undefined) return UNKNOWN;
  if (!isLong) return named(job.body, { class: "body" });
  try {
    return element("pre", {}, JSON.stringify(JSON.parse(job.body), null, 2));
  } catch {
    return element("pre", {}, job.body);
  }
}

// Buttons for what may be done; nothing if nothing may.
export function buttons(actions) {
  return actions.map((action) =>
    element(
      "button",
      { class: action.isGrave ? "grave" : "", click: () => propose([action]) },
      action.label,
      action.form && " …",
    ),
  );
}

// The last column of a row.
export function more(key, title, actions) {
  if (!actions.length) return "";
  const click = (event) => {
    event.stopPropagation();
    app.cursor = key;
    choices(title, actions);
  };
  return element("button", { class: "more", "aria-label": `Actions: ${title}`, click }, "⋯");
}
