// Ctrl-K: type a part of a name, and go there.

import { app, go, nodes, redraw } from "./app.js";
import { close, drawDialog, open } from "./dialog.js";
import { element } from "./elements.js";
import { savedViews } from "./views.js";
import { count, jobLink, nameWords, named, queueLink } from "./words.js";

const MOST = 12;
const TYPING_MS = 150;

export function openPalette(pages) {
  const state = { text: "", at: 0, pages, queues: [], id: null, timer: null };
  const ask = () => {
    app.link.unsubscribe(state.id);
    const args = { sort: "jobs", desc: true, match: state.text, only: "", page: 0 };
    state.id = app.link.subscribe("queues", args, 5000, ({ data }) => {
      state.queues = data?.rows ?? [];
      drawDialog();
    });
  };
  ask();
  open(
    () => ["Go to", ...drawn(state, ask)],
    () => {
      clearTimeout(state.timer);
      app.link.unsubscribe(state.id);
      redraw();
    },
  );
}

function found({ text, pages, queues }) {
  const wanted = text.trim().toLowerCase();
  const fits = (name) => name.toLowerCase().includes(wanted);
  const job = /^d-/i.test(wanted) ? [{ kind: "job", name: text.trim(), link: jobLink(text.trim()) }] : [];
  const exact = text.trim();
  const isNew = exact && !job.length && !queues.some(({ name }) => name === exact);
  return [
    ...job,
    ...pages.map(({ name, link }) => ({ kind: "page", name, link })).filter(({ name }) => fits(name)),
    ...savedViews().map(({ name, hash }) => ({ kind: "view", name, link: hash })).filter(({ name }) => fits(name)),
    ...nodes()
      .map(({ node, name }) => ({ kind: "node", name: name ? `${name} ${node}` : node, link: "#/cluster" }))
      .filter(({ name }) => fits(name)),
    ...queues.map((row) => ({
      kind: "queue",
      name: nameWords(row),
      link: queueLink(row),
      note: count(row.jobs, "job"),
    })),
    // It may not have been counted yet.
    ...(isNew ? [{ kind: "queue", name: exact, link: queueLink({ name: exact }) }] : []),
  ].slice(0, MOST);
}

function drawn(state, ask) {
  const hits = found(state);
  state.at = Math.max(0, Math.min(state.at, hits.length - 1));
  const take = (hit) => {
    close();
    go(hit.link);
  };
  const input = (event) => {
    state.text = event.target.value;
    state.at = 0;
    clearTimeout(state.timer);
    state.timer = setTimeout(ask, TYPING_MS);
    drawDialog();
  };
  const keydown = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) state.at = Math.max(0, Math.min(state.at + by, hits.length - 1));
    else if (event.key === "Enter" && hits[state.at]) take(hits[state.at]);
    else return;
    event.preventDefault();
    drawDialog();
  };
  return [
    element("input", {
      class: "wide",
      role: "combobox",
      "aria-label": "Queue, job, node or page",
      "aria-expanded": "true",
      "aria-controls": "hits",
      "aria-activedescendant": hits.length ? `hit-${state.at}` : null,
      placeholder: "queue, job ID, node or page",
      autocomplete: "off",
      spellcheck: "false",
      "data-first": true,
      input,
      keydown,
    }),
    element(
      "ul",
      { id: "hits", class: "hits", role: "listbox", "aria-label": "Found" },
      hits.map((hit, n) =>
        element(
          "li",
          { id: `hit-${n}`, role: "option", "aria-selected": String(n === state.at), click: () => take(hit) },
          element("span", { class: "kind" }, hit.kind),
          named(hit.name),
          hit.note && element("span", { class: "note" }, hit.note),
        ),
      ),
      !hits.length && element("li", { class: "empty" }, "Nothing has this name."),
    ),
  ];
}
