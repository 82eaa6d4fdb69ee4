// The nodes of the sandbox in a ring, with what is between them.

import { shape } from "./elements.js";

const SIZE = 250;
const FROM = 22; // a node's radius
const COLOURS = { up: "good", down: "bad", paused: "warn", leaving: "warn" };

// `side` has the chosen nodes; `flip` chooses one, or not.
export function map(data, side, flip) {
  const at = new Map(data.nodes.map(({ name }, n) => [name, place(n, data.nodes.length)]));
  const broken = new Map(data.links.map(([from, to, why]) => [`${from} ${to}`, why]));
  const pairs = data.nodes.flatMap(({ name }, n) => data.nodes.slice(n + 1).map((other) => [name, other.name]));
  return shape(
    "svg",
    { class: "sandbox-map", viewBox: `0 0 ${SIZE} ${lowest(at)}`, role: "group", "aria-label": "Nodes and links" },
    marker(),
    pairs.map(([one, other]) => link(one, other, at, broken)),
    data.nodes.map((node) => disc(node, at.get(node.name), side.has(node.name), flip)),
  );
}

function place(n, all) {
  if (all === 1) return [SIZE / 2, SIZE / 2];
  const angle = (2 * Math.PI * n) / all - Math.PI / 2;
  const far = SIZE / 2 - FROM - 6;
  return [SIZE / 2 + far * Math.cos(angle), SIZE / 2 + far * Math.sin(angle)];
}

const lowest = (at) => Math.max(...[...at.values()].map(([, y]) => y)) + FROM + 6;

const marker = () =>
  shape(
    "defs",
    {},
    shape(
      "marker",
      { id: "sandbox-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      shape("path", { d: "M0 0 8 4 0 8Z", class: "arrow" }),
    ),
  );

// Whole, cut both ways, or open in one direction only, which an arrow shows.
function link(one, other, at, broken) {
  const there = broken.get(`${one} ${other}`);
  const back = broken.get(`${other} ${one}`);
  const words = there && back ? `${one} and ${other} are partitioned from each other` : there ? `${one} → ${other} is cut` : back ? `${other} → ${one} is cut` : `${one} and ${other} are linked`;
  const [from, to] = there && !back ? [other, one] : [one, other];
  const [[x1, y1], [x2, y2]] = ends(at.get(from), at.get(to));
  const kind = there && back ? "cut" : there || back ? "one-way" : "whole";
  return shape(
    "g",
    { key: `${one} ${other}`, class: `link ${kind}` },
    shape("title", {}, words),
    shape("line", { x1, y1, x2, y2, "marker-end": kind === "one-way" ? "url(#sandbox-arrow)" : null }),
    kind === "cut" && shape("text", { x: (x1 + x2) / 2, y: (y1 + y2) / 2 + 5, "text-anchor": "middle" }, "✂"),
  );
}

function ends([x1, y1], [x2, y2]) {
  const long = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [dx, dy] = [((x2 - x1) / long) * (FROM + 3), ((y2 - y1) / long) * (FROM + 3)];
  return [[x1 + dx, y1 + dy], [x2 - dx, y2 - dy]];
}

function disc({ name, state, queued }, [x, y], isChosen, flip) {
  const words = `${name}: ${state}${isChosen ? ", selected" : ""}`;
  const act = flip
    ? {
        role: "button",
        tabindex: "0",
        "aria-pressed": String(isChosen),
        click: () => flip(name),
        keydown: (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          event.stopPropagation();
          flip(name);
        },
      }
    : { role: "img" };
  return shape(
    "g",
    { key: name, class: `disc ${COLOURS[state]} ${isChosen ? "chosen" : ""}`, "aria-label": words, ...act },
    shape("circle", { cx: x, cy: y, r: FROM }),
    shape("text", { x, y: y + 1, "text-anchor": "middle", class: "disc-name" }, name),
    shape("text", { x, y: y + 13, "text-anchor": "middle", class: "disc-note" }, state === "up" ? (queued ? `${queued} ●` : "") : state),
  );
}
