// What keys do.

import { amend, app, go, redraw } from "./app.js";
import { choices, propose } from "./operations.js";
import { isOpen, open } from "./dialog.js";
import { element } from "./elements.js";
import { openPalette } from "./palette.js";
import { step } from "./queues.js";
import { queueLink } from "./words.js";

// `page` has `pages` (those in the bar), `freeze` and `theme`.
export function listen(page) {
  document.addEventListener("keydown", (event) => onKey(event, page));
}

function onKey(event, page) {
  const { key, target } = event;
  if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette(page.pages());
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isOpen()) return;
  if (target.matches("input, select, textarea")) {
    if (key === "Escape") target.blur();
    return;
  }
  // Buttons and links have these keys for themselves.
  if ((key === " " || key === "Enter") && target.matches("button, a, summary")) return;
  if (app.press?.(event)) {
    event.preventDefault();
    return;
  }
  const todo = KEYS[key] ?? (/^[1-9]$/.test(key) ? openPage : /^[A-Z]$/.test(key) ? act : null);
  if (!todo) return;
  event.preventDefault();
  todo(key, page);
}

const KEYS = {
  "/": () => {
    const find = document.getElementById("find");
    if (find) find.select();
    else openPalette([]);
  },
  "?": help,
  j: () => move(1),
  k: () => move(-1),
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Enter: () => current()?.link && go(current().link),
  u: up,
  "[": () => turn(-1),
  "]": () => turn(1),
  x: choose,
  ".": list,
  " ": (_key, page) => page.freeze(),
  d: (_key, page) => page.theme(),
  Escape: () => {
    app.chosen.clear();
    app.cursor = null;
    redraw();
  },
};

function openPage(key, page) {
  const found = page.pages().find(({ number }) => number === Number(key));
  if (found) go(found.link);
}

const current = () => app.rows.find(({ key }) => key === app.cursor);

function move(by) {
  if (!app.rows.length) return;
  const at = app.rows.findIndex(({ key }) => key === app.cursor);
  const next = at < 0 ? (by > 0 ? 0 : app.rows.length - 1) : at + by;
  app.cursor = app.rows[Math.max(0, Math.min(next, app.rows.length - 1))].key;
  app.follows = true; // the cursor: it is brought into sight
  redraw();
}

function up() {
  const { page } = app.route;
  const { queue, queue_b64: raw } = (page === "job" && app.heard.job?.data?.facts) || {};
  if (queue) go(queueLink({ name: queue, name_b64: raw }));
  else go(page === "job" ? "#/jobs" : page === "queue" ? "#/queues" : page === "flow" ? "#/flows" : page === "flows" ? "#/jobs" : "#/overview");
}

function turn(by) {
  const put = app.heard.queues;
  if (app.route.page === "queues" && put?.data) step(put.data, by);
  else if (app.route.page === "queues") amend({ page: "" });
}

function choose() {
  if (!current()) return;
  if (!app.chosen.delete(app.cursor)) app.chosen.add(app.cursor);
  redraw();
}

// On what keys act: the chosen rows, or the one with the cursor, or what the page shows.
function targets() {
  const chosen = app.rows.filter(({ key }) => app.chosen.has(key));
  if (chosen.length) return chosen.map(({ title, actions }) => ({ title, actions: actions ?? [] }));
  const row = current();
  if (row?.actions?.length) return [row];
  return app.actions.length ? [{ title: document.querySelector("h1").textContent, actions: app.actions }] : [];
}

function act(letter) {
  propose(targets().flatMap(({ actions }) => actions.filter((one) => one.letter === letter)));
}

function list() {
  const on = targets();
  const actions = on[0]?.actions ?? [];
  if (!actions.length) return;
  const title = on.length === 1 ? on[0].title : `${on.length} selected`;
  choices(title, actions, ({ letter }) => act(letter));
}

const HELP = [
  ["1 – 9", "the pages of the menu"],
  ["Ctrl K", "go to any queue, job, node or page"],
  ["/", "search this page"],
  ["j k ↓ ↑", "next row, previous row"],
  ["Enter", "open the row"],
  ["u", "one level up"],
  ["[ ]", "previous and next page of queues"],
  ["x", "select the row, or deselect it"],
  [".", "operations for the row, the selected rows, or the page"],
  ["P D …", "the operation with this letter; it shows a plan first"],
  ["Space", "pause and resume the display"],
  ["d", "dark or light"],
  ["Esc", "close, leave the field, clear the selection"],
  ["?", "these keys"],
];

export function help() {
  const line = ([keys, words]) =>
    element(
      "div",
      {},
      element("dt", {}, keys.split(" ").map((key) => (/[–…]/.test(key) ? ` ${key} ` : element("kbd", {}, key)))),
      element("dd", {}, words),
    );
  const own = app.help;
  open(() => [
    "Keys",
    own.length > 0 && [element("h3", {}, "This page"), element("dl", { class: "keys" }, own.map(line)), element("h3", {}, "Every page")],
    element("dl", { class: "keys" }, HELP.map(line)),
  ]);
}
