// Named filters, which this browser remembers: each is the address of a page.

import { redraw } from "./app.js";
import { close, open } from "./dialog.js";
import { element } from "./elements.js";
import { named } from "./words.js";

const KEY = "disque.views";
const MOST = 50;

// What others have put into the storage is dropped.
export function savedViews() {
  try {
    const isView = (view) => typeof view?.name === "string" && typeof view.hash === "string" && view.hash.startsWith("#/");
    return JSON.parse(localStorage.getItem(KEY) ?? "[]").filter(isView).slice(0, MOST);
  } catch {
    return [];
  }
}

function keep(views) {
  localStorage.setItem(KEY, JSON.stringify(views.slice(0, MOST)));
  redraw();
}

// The saved views of a page, and a button that saves the one that is shown, if it has a filter.
export function viewBar(page) {
  const views = savedViews();
  const own = views.filter(({ hash }) => hash.startsWith(`#/${page}?`));
  const isNew = location.hash.startsWith(`#/${page}?`) && !own.some(({ hash }) => hash === location.hash);
  if (!own.length && !isNew) return null;
  const line = (view) => {
    const drop = () => keep(views.filter((each) => each !== view));
    return element(
      "li",
      { key: view.name },
      element("a", { href: view.hash, "aria-current": view.hash === location.hash ? "true" : null }, named(view.name)),
      element("button", { class: "plain", "aria-label": `Delete the view ${view.name}`, click: drop }, "✕"),
    );
  };
  return element(
    "div",
    { class: "views" },
    own.length > 0 && element("ul", { "aria-label": "Saved views" }, own.map(line)),
    isNew && element("button", { click: () => ask(location.hash) }, "Save view …"),
  );
}

// A view of the same name on the same page is replaced.
function ask(hash) {
  const submit = (event) => {
    event.preventDefault();
    const name = new FormData(event.target).get("name").trim();
    if (!name) return;
    const page = hash.split("?")[0];
    keep([...savedViews().filter((each) => each.name !== name || each.hash.split("?")[0] !== page), { name, hash }]);
    close();
  };
  open(() => [
    "Save view",
    element(
      "form",
      { submit },
      element("p", { class: "note" }, "This browser stores the view. To share it, copy its link."),
      element("label", { class: "field" }, element("span", {}, "name"), element("input", { name: "name", required: true, maxlength: 60, "data-first": true, autocomplete: "off" })),
      element("div", { class: "answers" }, element("button", { type: "button", click: close }, "Back"), element("button", { class: "main" }, "Save")),
    ),
  ]);
}
