// The one dialog: whoever opens it describes what is in it.

import { redraw } from "./app.js";
import { element, show } from "./elements.js";
import { sentence } from "./words.js";

let content = null;
let onClose = null;
const box = () => document.getElementById("dialog");

// `describe` gives the title and the children each time the page is drawn.
export function open(describe, closed = () => {}) {
  onClose?.();
  content = describe;
  onClose = closed;
  drawDialog();
  if (!box().open) box().showModal();
  box().querySelector("[data-first]")?.focus();
}

export function close() {
  box().close();
}

export const isOpen = () => box().open;

export function drawDialog() {
  if (!content) return;
  const [title, ...children] = content();
  show(
    box(),
    element(
      "div",
      { class: "dialog-head" },
      element("h2", { id: "dialog-title" }, typeof title === "string" ? sentence(title) : title),
      element("button", { class: "plain", "aria-label": "Close", click: close }, "✕"),
    ),
    children,
  );
}

export function watchDialog() {
  box().addEventListener("close", () => {
    content = null;
    const closed = onClose;
    onClose = null;
    show(box());
    closed?.();
    redraw();
  });
  // A click beside it.
  box().addEventListener("click", (event) => {
    if (event.target === box()) close();
  });
}
