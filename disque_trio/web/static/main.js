// The frame: the bar, the connection, and the page that the address names.

import { app, drawnBy, redraw, routeOf } from "./app.js";
import { audit } from "./audit.js";
import { cluster } from "./cluster.js";
import { dead } from "./dead.js";
import { drawDialog, isOpen, open, watchDialog } from "./dialog.js";
import { element, shape, show } from "./elements.js";
import { job } from "./job.js";
import { jobs } from "./jobs.js";
import { flow, flows } from "./flow.js";
import { help, listen } from "./keys.js";
import { later } from "./later.js";
import { Link } from "./link.js";
import { overview } from "./overview.js";
import { openPalette } from "./palette.js";
import { heading } from "./parts.js";
import { queue } from "./queue.js";
import { queues } from "./queues.js";
import { replay } from "./replay.js";
import { sandbox } from "./sandbox.js";
import { tasks } from "./tasks.js";
import { clock, count, named, now, sentence, setClock, span, visible } from "./words.js";
import { workers } from "./workers.js";

const PAGES = { overview, cluster, queues, queue, jobs, job, flows, flow, workers, tasks, dead, later, audit, replay, sandbox };
const IN_BAR = ["overview", "cluster", "queues", "jobs", "workers", "dead", "later", "replay", "sandbox"];
const EVERY = [1000, 2000, 5000, 15_000, 60_000];
const HISTORY_MS = 10_000; // between looks at what nodes have kept
const BEHIND_MS = 2000; // between looks at the findings from other pages

const held = new Map(); // by slot: the subscription that is open, and what it asks for
let farewell = "";
let spoken = "";
let tabShown = "";

const $ = (id) => document.getElementById(id);

// Those that the server knows. Each keeps its number.
function pages() {
  const topics = app.hello?.topics ?? IN_BAR.slice(0, 7);
  const isKnown = (name) => (name === "replay" ? app.hello?.replay : topics.includes(name));
  return IN_BAR.filter(isKnown).map((page) => ({
    name: PAGES[page].name,
    page,
    number: IN_BAR.indexOf(page) + 1,
    link: `#/${page}`,
  }));
}

const hasCluster = () => app.hello?.topics.includes("overview") ?? true;

const clusterName = () => app.hello?.cluster || app.heard.overview?.data?.cluster || "";

// Where one begins: a console may have no cluster.
const home = () => pages()[0]?.link ?? "#/overview";

// What has to be asked for now: the page's topics, and the findings always.
function wanted() {
  if (app.frozenAt || document.hidden) return [];
  const page = PAGES[app.route.page];
  const own = Object.entries(page?.topics(app.route) ?? {}).map(([topic, args]) => [topic, args, topic === "history" ? Math.max(app.every, HISTORY_MS) : page.every ?? app.every]);
  const isOverview = own.some(([topic]) => topic === "overview");
  const all = isOverview ? own : [["overview", {}, Math.max(app.every, BEHIND_MS)], ...own];
  return all.filter(([topic]) => app.hello?.topics.includes(topic) ?? true);
}

function subscribe() {
  const asked = new Map(wanted().map((each) => [each[0], each]));
  for (const [topic, { id, words }] of held) {
    if (JSON.stringify(asked.get(topic)) === words) continue;
    app.link.unsubscribe(id);
    held.delete(topic);
  }
  for (const [topic, each] of asked) {
    if (held.has(topic)) continue;
    const [, args, every] = each;
    const put = (message) => hear(topic, message);
    held.set(topic, { id: app.link.subscribe(topic, args, every, put), words: JSON.stringify(each) });
  }
}

function hear(topic, put) {
  // What was known before an error is still shown.
  app.heard[topic] = put.error ? { ...app.heard[topic], error: put.error } : put;
  if (topic === "overview" && put.data) {
    setClock(put.data.now_ms ?? put.at);
    say(put.data.findings);
  }
  redraw();
}

// To those who listen: what is wrong, when it changes, and nothing else.
function say(findings) {
  const grave = findings.filter(({ level }) => level === "bad" || level === "warn").map(({ text }) => text);
  // A figure that grows is no news, nor is another order; a figure in a name is.
  const set = grave.map((text) => text.replace(/"[^"]*"|\d[\d,.]*/g, (part) => (part[0] === '"' ? part : "#"))).sort().join();
  if (set === spoken) return;
  show($("said"), grave.length ? grave.map((text, n) => [n > 0 && ". ", ...sentence(text)]) : spoken && "No problem any more.");
  spoken = set;
}

function arrive() {
  const before = app.route;
  app.route = routeOf(location.hash);
  if (before.page !== app.route.page || before.name !== app.route.name) leave(before);
  subscribe();
  redraw();
}

// Where the bar is wider than the screen.
function showTab() {
  const tab = document.querySelector("#bar nav a[aria-current]");
  const nav = tab?.closest("nav");
  if (nav) nav.scrollLeft = tab.offsetLeft - (nav.clientWidth - tab.offsetWidth) / 2;
}

function leave({ page }) {
  app.cursor = null;
  app.chosen.clear();
  app.wants = {};
  // An answer about another queue or job is not shown for a moment under the new name.
  for (const topic of ["queue", "job", "job-timeline", "jobs", page]) if (topic !== "overview") delete app.heard[topic];
  scrollTo(0, 0);
}

function freeze() {
  app.frozenAt = app.frozenAt ? null : now();
  subscribe();
  redraw();
}

function theme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("disque.theme", root.dataset.theme);
  redraw();
}

function bar() {
  const { page } = app.route;
  const isAt = (name) => page === name || PAGES[page]?.under === name;
  const link = ({ name, page: to, number, link: href }) =>
    element(
      "li",
      { key: to },
      element(
        "a",
        { href, "aria-current": isAt(to) ? "page" : null },
        element("kbd", { "aria-hidden": "true" }, number),
        name,
        to === "overview" && badFindings(),
      ),
    );
  return [
    element("a", { class: "brand", href: home() }, logo(), element("bdi", {}, clusterName() || "disque")),
    element("nav", { "aria-label": "Pages" }, element("ol", {}, pages().map(link))),
    element("div", { class: "tools" }, tools()),
  ];
}

function badFindings() {
  const bad = (app.heard.overview?.data?.findings ?? []).filter(({ level }) => level === "bad").length;
  if (!bad) return null;
  return element("span", { class: "badge bad", "aria-label": count(bad, "problem") }, bad);
}

const logo = () =>
  shape(
    "svg",
    { class: "logo", viewBox: "0 0 32 32", width: 22, height: 22, "aria-hidden": "true" },
    shape("path", { d: "M16 7 25 23H7Z" }),
    shape("circle", { cx: 16, cy: 7, r: 5 }),
    shape("circle", { cx: 25, cy: 23, r: 5 }),
    shape("circle", { cx: 7, cy: 23, r: 5 }),
  );

function tools() {
  const isFrozen = app.frozenAt !== null;
  const isDark = document.documentElement.dataset.theme === "dark";
  const choose = (event) => {
    app.every = Number(event.target.value);
    localStorage.setItem("disque.every", String(app.every));
    subscribe();
  };
  return [
    pulse(isFrozen),
    hasCluster() && element(
      "select",
      { "aria-label": "Refresh interval", title: "refresh interval", value: String(app.every), change: choose },
      EVERY.map((each) => element("option", { value: String(each) }, span(each / 1000))),
    ),
    hasCluster() && element(
      "button",
      { "aria-pressed": String(isFrozen), title: "pause the display (Space)", click: freeze },
      isFrozen ? "Resume" : "Pause",
    ),
    element("button", { title: "go to (Ctrl-K)", click: () => openPalette(pages()) }, "Go to ", element("kbd", {}, "Ctrl K")),
    element("button", { title: "copy the address of this view", click: copyLink }, "Link"),
    element("button", { "aria-label": isDark ? "Light" : "Dark", title: "light or dark (d)", click: theme }, isDark ? "☀" : "☾"),
    element("button", { "aria-label": "Keys", title: "keys (?)", click: help }, "?"),
    app.hello?.topics.length > 0 && !app.hello.operations.length && element("span", { class: "badge" }, "read only"),
    app.hello?.login && element("form", { method: "post", action: "/logout" }, element("button", { class: "plain" }, "Log out")),
  ];
}

// A browser has a clipboard only where the connection is safe: else the address can be copied by hand.
async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    open(() => ["Link copied", element("p", { class: "note" }, named(location.href))]);
  } catch {
    const field = { class: "wide", readonly: true, value: location.href, "aria-label": "Address", "data-first": true, focus: (event) => event.target.select() };
    open(() => ["Address of this view", element("input", field)]);
  }
}

function pulse(isFrozen) {
  if (isFrozen) return element("span", { class: "pulse frozen" }, `paused at ${clock(app.frozenAt)}`);
  const isLive = app.link.isLive;
  return element(
    "span",
    { class: `pulse ${isLive ? "live" : "away"}` },
    element("span", { class: "mark", "aria-hidden": "true" }, isLive ? "●" : "○"),
    element("span", { class: "words" }, isLive ? " live" : " not connected"),
  );
}

function notice() {
  const { link } = app;
  if (link.isLive || (link.lostAt === null && link.failures === 0)) return [];
  const since = link.lostAt
    ? `Not connected since ${clock(link.lostAt - Date.now() + now())}. The display is from that time.`
    : "The server cannot be reached.";
  const left = link.againAt === null ? null : Math.max(0, Math.ceil((link.againAt - Date.now()) / 1000));
  const next = left === null ? " Trying now …" : ` Next try in ${left} s.`;
  return [
    element(
      "div",
      { class: "lost", role: "alert" },
      element("span", {}, `${since} ${farewell}`),
      element("span", { "aria-hidden": "true" }, next),
      element("button", { click: () => link.openSoon() }, "Try now"),
    ),
  ];
}

function draw() {
  const page = PAGES[app.route.page];
  app.rows = [];
  app.actions = [];
  app.press = null;
  app.help = [];
  show($("bar"), bar());
  show($("notice"), notice());
  const content = page
    ? page.view(app.heard, app.route)
    : [heading("No such page", "The pages are in the bar above.")];
  show($("page"), content);
  const of = app.route.args.b64 ? null : app.route.name;
  document.title = [of && visible(of), page?.name ?? "No such page", clusterName(), "disque"].filter(Boolean).join(" · ");
  if (tabShown !== app.route.page && document.querySelector("#bar nav a[aria-current]")) {
    tabShown = app.route.page;
    showTab();
  }
  document.body.classList.toggle("away", !app.link.isLive);
  if (isOpen()) drawDialog();
  follow();
}

function follow() {
  if (!app.follows) return;
  app.follows = false;
  const row = document.querySelector("[data-row][aria-current]");
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
}

function begin() {
  app.every = Number(localStorage.getItem("disque.every")) || 1000;
  app.link = new Link({
    hello: (message) => {
      app.hello = message;
      farewell = "";
      if (!message.topics.includes("overview") && app.route.page === "overview") location.replace(home());
      subscribe();
    },
    change: redraw,
    farewell: (says) => (farewell = says),
  });
  drawnBy(draw);
  watchDialog();
  listen({ pages, freeze, theme });
  addEventListener("hashchange", arrive);
  document.addEventListener("visibilitychange", () => {
    subscribe();
    if (!document.hidden) app.link.openSoon();
  });
  addEventListener("online", () => app.link.openSoon());
  // Ages go on, and so does the time until the next try.
  setInterval(() => app.link.isLive || redraw(), 1000);
  arrive();
  app.link.open();
  draw();
}

begin();
