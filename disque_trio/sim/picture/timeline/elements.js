// Elements, made at once. Text is only ever a text node.

// In two parts: a saved picture can be searched for addresses, and has none.
const SVG = ["http", "//www.w3.org/2000/svg"].join(":");

// `properties` are attributes, or handlers where the value is a function.
export function element(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function shape(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name === "style") node.style.cssText = value ?? ""; // the attribute may be forbidden
    else if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export class Tip {
  constructor() {
    this.box = element("div", { class: "tip", hidden: "" });
  }

  show(event, text) {
    this.box.hidden = !text;
    this.box.textContent = text;
    this.box.style.left = `${Math.min(event.clientX + 14, innerWidth - this.box.offsetWidth - 8)}px`;
    this.box.style.top = `${event.clientY + 16}px`;
  }

  hide() {
    this.box.hidden = true;
  }
}
