// What happens: marks of events, brackets of duplicates, and the times below.

import { shape } from "./elements.js";
import { GAP, causeColour, textWidth } from "./marks.js";
import { length, say, seconds } from "./sentences.js";

const said = (run, i) => `${seconds(run.time[i], 6)} s · ${say(run, i)}`;

// `on` has `click(row)`, `enter(event, row)` and `leave()`.
export function drawMarks(scene, group, sight, on) {
  const { run, lifelines, axis, place, marks, deep } = scene;
  const taken = new Map();
  for (const i of sight) {
    const mark = marks.get(i);
    const y = lifelines.get(run.lifeline[i]);
    const x = axis.x[place.get(i)];
    if (!mark || y === undefined) continue;
    const fill = `var(--${mark.hue ?? "ink"})`;
    const parts = [];
    if (mark.glyph) {
      parts.push(
        shape("circle", { cx: x, cy: y, r: mark.isLoud ? 10.5 : 9, fill, stroke: "var(--card)" }),
        shape(
          "text",
          {
            class: "glyph",
            x,
            y: y + 4,
            style: mark.hue === "queued" ? "fill:var(--on-queued)" : null,
          },
          mark.glyph,
        ),
      );
    } else {
      parts.push(
        shape("circle", {
          cx: x,
          cy: y,
          r: 4,
          fill: mark.hue ? fill : "var(--card)",
          stroke: fill,
          "stroke-width": 1.5,
        }),
      );
    }
    const half = textWidth(mark.label ?? "") / 2;
    if (mark.label && deep > 30 && x - half >= (taken.get(y) ?? -99) + GAP) {
      parts.push(
        shape(
          "text",
          {
            class: "label",
            x,
            y: y - 13,
            style: mark.isLoud ? `fill:${fill};font-weight:700` : null,
          },
          mark.label,
        ),
      );
      taken.set(y, x + half);
      scene.named.push({ x, y: y - 16, half });
    }
    const isDim = scene.past && !scene.past.has(i);
    group.append(
      shape(
        "g",
        {
          class: isDim ? "mark dim" : "mark",
          role: "img",
          "aria-label": said(run, i),
          click: () => on.click(i),
          mousemove: (event) => on.enter(event, said(run, i)),
          mouseleave: () => on.leave(),
        },
        ...parts,
      ),
    );
  }
}

export function drawBrackets(scene, group) {
  const { run } = scene;
  for (const { row, first, x1, x2, middle, said, cause, level } of scene.brackets) {
    const y = 14 + 19 * level;
    const stroke = `var(--${causeColour(cause)})`;
    const [from, to] = [
      scene.lifelines.get(run.lifeline[first]) ?? y + 12,
      scene.lifelines.get(run.lifeline[row]) ?? y + 12,
    ];
    group.append(
      shape("path", {
        d: `M${x1} ${from - 12}V${y}H${x2}V${to - 12}`,
        fill: "none",
        stroke,
        "stroke-width": 1.8,
        "stroke-dasharray": "1 3",
        "stroke-linecap": "round",
      }),
    );
    group.append(
      shape("path", {
        d: `M${x1} ${y + 6}V${y}H${x2}V${y + 6}`,
        fill: "none",
        stroke,
        "stroke-width": 2.2,
      }),
    );
    group.append(
      shape(
        "text",
        {
          class: "label",
          x: middle,
          y: y + 4,
          style: `fill:${stroke};font-weight:700;font-size:12px;stroke-width:6px`,
        },
        said,
      ),
    );
  }
}

export function drawAxis(scene, group, left, right, sight) {
  const { run, axis, place, height } = scene;
  const y = height - 30;
  let free = -99;
  let freeBelow = -99;
  let before = null;
  group.append(
    shape("line", { x1: Math.max(0, left), x2: right, y1: y, y2: y, stroke: "var(--line)" }),
  );
  for (const i of sight) {
    const n = place.get(i);
    const x = axis.x[n];
    const time = run.time[i];
    if (time === before) continue;
    const gap = before === null ? 0 : time - before;
    const middle = n ? (x + axis.x[n - 1]) / 2 : 0;
    const said = length(gap);
    if (gap >= 1e5 && middle - textWidth(said) / 2 > freeBelow + 4) {
      group.append(
        shape("text", { class: "tick", x: middle, y: y + 25, "text-anchor": "middle" }, said),
      );
      freeBelow = middle + textWidth(said) / 2;
    }
    before = time;
    if (x - free < 62) continue;
    group.append(
      shape("line", { x1: x, x2: x, y1: y, y2: y + 4, stroke: "var(--muted)" }),
      shape("text", { class: "tick", x, y: y + 14, "text-anchor": "middle" }, seconds(time)),
    );
    free = x;
  }
}
