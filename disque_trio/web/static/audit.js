// Who has run which operation at this console. Only an admin is shown it.

import { app, redraw } from "./app.js";
import { element } from "./elements.js";
import { card, heading, unreached, waiting } from "./parts.js";
import { table } from "./table.js";
import { inOrAgo, named } from "./words.js";

const FRESH_MS = 5000;

export const audit = {
  name: "Audit log",
  under: "cluster",
  topics: () => ({}),
  view(heard) {
    look();
    const put = heard.audit;
    if (!put?.data) return [heading("Audit log"), waiting(put, "operations")];
    return [
      heading("Audit log", "Operations that were run in this console and over HTTP, latest first.", element("a", { href: "#/cluster" }, "Cluster")),
      put.error && unreached(put),
      card("Operations", {}, entries(put.data.entries)),
    ];
  },
};

// No topic: the nodes do not know it.
async function look() {
  if (Date.now() - (app.heard.audit?.asked ?? 0) < FRESH_MS || app.frozenAt) return;
  const before = app.heard.audit;
  app.heard.audit = { ...before, asked: Date.now() };
  const put = await fetch("/api/v1/audit")
    .then(async (answer) => ({ told: await answer.json(), isGood: answer.ok }))
    .then(({ told, isGood }) => (isGood ? { data: told } : { data: before?.data, error: told.detail }))
    .catch(() => ({ data: before?.data, error: "the server cannot be reached" }));
  app.heard.audit = { ...put, asked: Date.now() };
  if (app.route.page !== "audit") return;
  redraw();
  setTimeout(redraw, FRESH_MS);
}

function entries(rows) {
  return table({
    caption: "Operations",
    rows,
    columns: [
      { label: "when", cell: ({ at_ms: at }) => element("span", { title: new Date(at).toISOString() }, inOrAgo(at)) },
      { label: "user", class: "names", cell: ({ user, role }) => element("span", { title: role }, named(user || "no login")) },
      { label: "from", cell: ({ address, by }) => `${address} ${by === "http" ? "HTTP" : by}` },
      { label: "operation", cell: ({ operation }) => operation },
      { label: "target", class: "names", cell: ({ target }) => named(target) },
      { label: "outcome", class: "names", cell: ({ outcome, is_ok: ok }) => element("span", { class: ok ? "" : "bad-text" }, named(outcome)) },
    ],
    none: "No operation has been run here.",
  });
}
