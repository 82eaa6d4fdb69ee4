// Tables: real ones, with captions and headers that sort, and one row on which keys act.

import { app, amend, go, redraw } from "./app.js";
import { element } from "./elements.js";
import { more } from "./parts.js";

// `columns` have `label`, `cell(row)`, and `isNumber`, `sort` (its name at the server), `title`, `class`
// and `needs` where wanted: without a row that has this field, the column is left out. `rowOf(row)` gives { key, title, link, actions }, if rows can be acted on.
export function table({ caption, columns: all, rows, rowOf = null, sort = null, none = "None." }) {
  const columns = all.filter(({ needs }) => !needs || rows.some((row) => isFilled(row[needs])));
  const known = rowOf ? rows.map((row) => ({ ...rowOf(row), row })) : rows.map((row) => ({ row }));
  if (rowOf) app.rows = known;
  const hasActions = known.some(({ actions }) => actions?.length);
  const wide = columns.length + Number(hasActions);
  return element(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    element(
      "table",
      {},
      element("caption", { class: "unseen" }, caption),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          columns.map((column) => header(column, sort)),
          hasActions && element("th", { scope: "col", class: "actions" }, element("span", { class: "unseen" }, "Actions")),
        ),
      ),
      element(
        "tbody",
        {},
        known.map((each) => line(each, columns, hasActions)),
        !rows.length && element("tr", {}, element("td", { class: "empty", colspan: wide }, none)),
      ),
    ),
  );
}

const isFilled = (value) => (value && typeof value === "object" ? Object.keys(value).length > 0 : Boolean(value));

function header({ label, title = null, isNumber, class: kind = "", sort: name }, sort) {
  const properties = { scope: "col", class: `${isNumber ? "number" : ""} ${name && sort ? "sorts" : ""} ${kind.includes("spare") ? "spare" : ""}`, title };
  if (!name || !sort) return element("th", properties, label);
  const isIt = sort.by === name;
  const direction = sort.isDown ? "descending" : "ascending";
  const click = () => amend({ sort: name, desc: isIt ? String(!sort.isDown) : "", page: "" });
  const mark = isIt ? (sort.isDown ? " ↓" : " ↑") : "";
  return element(
    "th",
    { ...properties, "aria-sort": isIt ? direction : "none" },
    element("button", { class: "sort", click }, label, element("span", { "aria-hidden": "true" }, mark)),
  );
}

function line({ key, title, link, actions, row }, columns, hasActions) {
  const isCurrent = key !== undefined && key === app.cursor;
  const properties = key === undefined ? {} : {
    key,
    class: `row ${app.chosen.has(key) ? "chosen" : ""} ${link ? "opens" : ""}`,
    tabindex: isCurrent ? "0" : "-1",
    "aria-current": isCurrent ? "true" : null,
    "data-row": "",
    click: (event) => pick(event, key, link),
  };
  const cells = columns.map((column, n) => {
    const first = n === 0;
    const chosen = first && app.chosen.has(key) && element("span", { class: "unseen" }, "chosen: ");
    // Narrow screens show rows as cards: each value with its label.
    const at = { class: `${column.isNumber ? "number" : ""} ${column.class ?? ""}`, "data-label": column.label };
    return first
      ? element("th", { ...at, scope: "row" }, chosen, column.cell(row))
      : element("td", at, column.cell(row));
  });
  return element(
    "tr",
    properties,
    cells,
    hasActions && element("td", { class: "number actions" }, more(key, title, actions ?? [])),
  );
}

function pick(event, key, link) {
  app.cursor = key;
  if (event.target.closest("a, button") === null && link && !getSelection().toString()) go(link);
  redraw();
}
