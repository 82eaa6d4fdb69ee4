// The space-time diagram: a lifeline for each node and agent, with time to the right.

import { drawArrows } from "./arrows.js";
import { drawBands, drawFaults } from "./bands.js";
import { Tip, element, shape } from "./elements.js";
import { drawAxis, drawBrackets, drawMarks } from "./events.js";
import { DRAW_ALL, layOut, pastOf } from "./scene.js";

const SPOT = 5; // pixels
const LAYERS = ["faults", "bands", "lines", "arrows", "marks", "brackets", "axis"];

export class Diagram {
  // Draws into `host`. `goTo(row)` is called when an event is clicked.
  constructor(host, goTo) {
    this.tip = new Tip();
    this.gutter = element("div", { class: "gutter", role: "list", "aria-label": "Lanes" });
    this.scroll = element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Space-time diagram" });
    this.scene = null;
    this.view = null;
    this.on = {
      click: goTo,
      enter: (event, text) => this.tip.show(event, text),
      leave: () => this.tip.hide(),
    };
    host.append(this.gutter, this.scroll, this.tip.box);
    this.#watch();
  }

  #watch() {
    let isDue = false;
    this.scroll.addEventListener("scroll", () => {
      if (isDue || !this.scene || this.scene.rows.length <= DRAW_ALL) return;
      isDue = true;
      requestAnimationFrame(() => {
        isDue = false;
        this.drawWindow();
      });
    });
    let wide = 0;
    const fit = () => {
      if (this.scroll.clientWidth === wide) return;
      wide = this.scroll.clientWidth;
      if (this.scene) this.draw(this.scene.run, this.view);
    };
    // Later, for an observer must not change what it observes.
    new ResizeObserver(() => setTimeout(fit, 0)).observe(this.scroll);
  }

  draw(run, view) {
    this.view = view;
    this.scene = layOut(run, view, this.scroll.clientWidth || 900);
    const { height, width, rows } = this.scene;
    const { scrollLeft } = this.scroll;
    this.scroll.replaceChildren();
    this.scroll.style.height = `${height + 16}px`;
    if (!rows.length) {
      const text = run.count ? "Nothing here passes the filters." : "Nothing has happened yet.";
      this.scroll.append(element("div", { class: "empty" }, text));
      this.gutter.replaceChildren();
      return;
    }
    this.svg = shape("svg", { width, height });
    this.cursor = shape("g");
    this.scroll.append(this.svg);
    this.scroll.scrollLeft = scrollLeft;
    this.#drawGutter();
    this.drawWindow();
  }

  #drawGutter() {
    const { run, lifelines, hasCopies, bottom } = this.scene;
    const names = [...lifelines].map(([lifeline, y]) =>
      element(
        "span",
        {
          style: `top:${y}px`,
          role: "listitem",
          "aria-label": run.lifelines[lifeline],
          class: run.isNode(lifeline) ? "lane" : "lane agent",
        },
        element("bdi", { title: run.lifelines[lifeline] }, run.lifelines[lifeline]),
      ),
    );
    if (hasCopies) {
      names.push(element("span", { style: `top:${bottom + 28}px`, class: "copies", "aria-hidden": "true" }, "copies"));
    }
    this.gutter.replaceChildren(...names);
    const lengths = [...lifelines.keys()].map((lifeline) => run.lifelines[lifeline].length);
    this.gutter.style.width = `${Math.min(Math.max(7.5 * Math.max(...lengths), 36) + 14, 150)}px`;
  }

  // Draws the visible part, or everything where there are few rows.
  drawWindow() {
    const { scene, view, scroll } = this;
    if (!scene?.rows.length) return;
    const { rows, width } = scene;
    const isAll = rows.length <= DRAW_ALL;
    const left = isAll ? 0 : scroll.scrollLeft - 400;
    const right = isAll ? width : scroll.scrollLeft + scroll.clientWidth + 400;
    scene.named = [];
    scene.past = view.isPastOnly
      ? pastOf(scene, rows[scene.place.get(view.rows[view.place]) ?? 0])
      : null;
    const from = isAll ? 0 : firstBeyond(scene.axis.x, left);
    const sight = isAll ? rows : thinned(scene, rows.slice(from, firstBeyond(scene.axis.x, right)));
    const put = Object.fromEntries(LAYERS.map((name) => [name, shape("g")]));
    drawFaults(scene, put.faults, left, right);
    drawBands(scene, put.bands, left, right);
    drawMarks(scene, put.marks, sight, this.on);
    drawArrows(scene, put.arrows, sight, isAll);
    drawBrackets(scene, put.brackets);
    drawAxis(scene, put.axis, left, right, sight);
    this.svg.replaceChildren(...Object.values(put), this.cursor);
    this.drawCursor();
  }

  drawCursor() {
    const { scene, view } = this;
    if (!scene?.rows.length) return;
    const { run, rows, axis, lifelines, height } = scene;
    const row = view.rows[view.place];
    const n = scene.place.get(row) ?? Math.max(0, run.firstAfter(rows, run.time[row]) - 1);
    const x = axis.x[n];
    const y = lifelines.get(run.lifeline[rows[n]]);
    const look = { stroke: "var(--ink)", fill: "none" };
    this.cursor.replaceChildren(
      shape("line", { ...look, x1: x, x2: x, y1: 0, y2: height - 30, "stroke-width": 1, opacity: 0.6 }),
    );
    if (y !== undefined) {
      this.cursor.append(shape("circle", { ...look, cx: x, cy: y, r: 13, "stroke-width": 2 }));
    }
    const { scroll } = this;
    if (x < scroll.scrollLeft + 40 || x > scroll.scrollLeft + scroll.clientWidth - 60) {
      scroll.scrollLeft = x - scroll.clientWidth / 2;
    }
  }
}

// At true distances thousands of events may be in one place: of each lane and place one is drawn.
function thinned({ run, axis, place, marks }, sight) {
  if (sight.length <= DRAW_ALL) return sight;
  const taken = new Set();
  return sight.filter((i) => {
    if (marks.get(i)?.isLoud) return true;
    const spot = Math.floor(axis.x[place.get(i)] / SPOT);
    const key = `${spot} ${run.lifeline[i]} ${run.isMessage(i)}`;
    return !taken.has(key) && taken.add(key);
  });
}

function firstBeyond(x, limit) {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
