// What lasts: faults, the states of the chosen job on each node, and how many copies there are.

import { shape } from "./elements.js";
import { textWidth } from "./marks.js";
import { isCopy, STATES } from "./run.js";
import { BAND } from "./scene.js";

export function drawFaults(scene, group, left, right) {
  const { run, axis, top, bottom, lifelines, deep } = scene;
  const free = { x: 0 };
  for (const [what, start, end, label, nodes, colour, isOfLinks] of run.bars) {
    const from = Math.max(axis.at(start), left);
    const to = Math.min(axis.at(end), right);
    if (to <= from || end === start) continue;
    const fill = `var(--${colour})`;
    if (isOfLinks) {
      group.append(
        shape("rect", {
          x: from,
          y: top - 16,
          width: to - from,
          height: bottom - top + 16,
          fill,
          opacity: 0.09,
        }),
      );
      const said = `${what} ${label}`;
      const at = Math.max(from + 3, free.x);
      if (at + textWidth(said) < to + 40) {
        group.append(
          shape("text", { x: at, y: top - 5, style: `fill:${fill};font-weight:600` }, said),
        );
        free.x = at + textWidth(said) + 10;
      }
      continue;
    }
    for (const name of nodes) {
      const y = lifelines.get(run.lifelines.indexOf(name));
      if (y !== undefined) {
        group.append(
          shape("rect", {
            x: from,
            y: y - deep * 0.45,
            width: to - from,
            height: deep * 0.9,
            fill,
            opacity: 0.22,
          }),
        );
      }
    }
  }
}

export function drawBands(scene, group, left, right) {
  const { run, view, lifelines, axis, place, rows, bottom, hasCopies } = scene;
  for (const [lifeline, y] of lifelines) {
    group.append(
      shape("rect", {
        x: Math.max(0, left),
        y: y - (run.isNode(lifeline) ? BAND / 2 : 0.5),
        width: right - Math.max(0, left),
        height: run.isNode(lifeline) ? BAND : 1,
        fill: run.isNode(lifeline) ? "var(--none)" : "var(--line)",
      }),
    );
  }
  if (!hasCopies) return;
  const since = new Map();
  const copies = [];
  let held = 0;
  const band = (lifeline, state, from, to) => {
    const y = lifelines.get(lifeline);
    if (state && y !== undefined && to > left && from < right) {
      group.append(
        shape("rect", {
          x: from,
          y: y - BAND / 2,
          width: Math.max(to - from, 0.5),
          height: BAND,
          fill: `var(--${STATES[state]})`,
        }),
      );
    }
  };
  for (const [row, lifeline, before, after] of run.movesOf(view.job)) {
    const x = place.has(row) ? axis.x[place.get(row)] : axis.at(run.time[row]);
    if (since.has(lifeline)) band(lifeline, before, since.get(lifeline)[0], x);
    since.set(lifeline, [x, after]);
    held += isCopy(after) - isCopy(before);
    copies.push([x, held]);
  }
  for (const [lifeline, [x, state]] of since) band(lifeline, state, x, axis.width);
  if (rows.length) drawCopies(scene, group, copies, bottom + 44);
}

function drawCopies(scene, group, copies, zero) {
  const wanted = scene.run.jobs[scene.view.job][2];
  const most = Math.max(wanted, 1, ...copies.map((c) => c[1]));
  const y = (count) => zero - (count / most) * 32;
  let path = `M0 ${zero}`;
  for (const [x, count] of copies) path += `H${x}V${y(count)}`;
  path += `H${scene.axis.width}`;
  group.append(
    shape("path", { d: `${path}V${zero}Z`, fill: "var(--held)", opacity: 0.7 }),
    shape("path", { d: path, fill: "none", stroke: "var(--accent)", "stroke-width": 1.5 }),
  );
  if (!wanted) return;
  group.append(
    shape("line", {
      x1: 0,
      x2: scene.width,
      y1: y(wanted),
      y2: y(wanted),
      stroke: "var(--warn)",
      "stroke-dasharray": "5 3",
    }),
  );
  group.append(
    shape("text", { x: 2, y: y(wanted) - 3, style: "fill:var(--warn)" }, `W = ${wanted}`),
  );
}
