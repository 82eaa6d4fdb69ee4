// The space-time diagram: a lifeline for each node and agent, with time to the right.

function drawDiagram() {
  scene = layOut();
  const holder = $("scroll");
  const { height, width } = scene;
  holder.replaceChildren();
  holder.style.height = `${height + 16}px`;
  if (!scene.rows.length) {
    holder.append(
      element(
        "div",
        { class: "empty" },
        run.count ? "Nothing here passes the filters." : "Nothing happened in this run.",
      ),
    );
    $("gutter").replaceChildren();
    return;
  }
  scene.svg = shape("svg", { width, height });
  scene.cursor = shape("g");
  holder.append(scene.svg);
  drawGutter();
  drawWindow();
}

function drawGutter() {
  const names = [...scene.lifelines].map(([lifeline, y]) =>
    element(
      "span",
      { style: `top:${y}px`, class: isNode(lifeline) ? "" : "agent" },
      run.lifelines[lifeline],
    ),
  );
  if (scene.hasCopies) {
    names.push(element("span", { style: `top:${scene.bottom + 28}px`, class: "axis" }, "copies"));
  }
  $("gutter").replaceChildren(...names);
  const lengths = [...scene.lifelines.keys()].map((lifeline) => run.lifelines[lifeline].length);
  $("gutter").style.width = `${Math.max(7.5 * Math.max(...lengths), 36) + 14}px`;
}

// Draws the visible part, or everything where there are few rows.
function drawWindow() {
  if (!scene?.svg) return;
  const { svg, rows, width } = scene;
  const holder = $("scroll");
  const isAll = rows.length <= DRAW_ALL;
  const left = isAll ? 0 : holder.scrollLeft - 400;
  const right = isAll ? width : holder.scrollLeft + holder.clientWidth + 400;
  scene.named = [];
  scene.past = view.isPastOnly ? pastOf(rows[scene.place.get(view.rows[view.place]) ?? 0]) : null;
  const from = isAll ? 0 : firstBeyond(scene.axis.x, left);
  const sight = isAll ? rows : rows.slice(from, firstBeyond(scene.axis.x, right));
  const layers = ["faults", "bands", "lines", "arrows", "marks", "brackets", "axis"].map((name) => [
    name,
    shape("g"),
  ]);
  const put = Object.fromEntries(layers);
  svg.replaceChildren(...layers.map(([, group]) => group), scene.cursor);
  drawFaults(put.faults, left, right);
  drawBands(put.bands, left, right);
  drawMarks(put.marks, sight);
  drawArrows(put.arrows, sight, isAll);
  drawBrackets(put.brackets);
  drawAxis(put.axis, left, right, sight);
  drawCursor();
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

function drawFaults(group, left, right) {
  const { axis, top, bottom, lifelines, deep } = scene;
  const free = { x: 0 };
  for (const [what, start, end, label, nodes] of run.bars) {
    const from = Math.max(axis.at(start), left);
    const to = Math.min(axis.at(end), right);
    if (to <= from || end === start) continue;
    const fill = `var(--${BAR_COLOURS[what] ?? "other"})`;
    if (LINK_FAULTS.has(what)) {
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

function drawBands(group, left, right) {
  const { lifelines, axis, place, rows, bottom, hasCopies } = scene;
  for (const [lifeline, y] of lifelines) {
    group.append(
      shape("rect", {
        x: Math.max(0, left),
        y: y - (isNode(lifeline) ? BAND / 2 : 0.5),
        width: right - Math.max(0, left),
        height: isNode(lifeline) ? BAND : 1,
        fill: isNode(lifeline) ? "var(--none)" : "var(--line)",
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
  for (const [row, lifeline, before, after] of movesOf(view.job)) {
    const x = place.has(row) ? axis.x[place.get(row)] : axis.at(run.time[row]);
    if (since.has(lifeline)) band(lifeline, before, since.get(lifeline)[0], x);
    since.set(lifeline, [x, after]);
    held += isCopy(after) - isCopy(before);
    copies.push([x, held]);
  }
  for (const [lifeline, [x, state]] of since) band(lifeline, state, x, axis.width);
  if (rows.length) drawCopies(group, copies, bottom + 44);
}

function drawCopies(group, copies, zero) {
  const wanted = run.jobs[view.job][2];
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

function drawMarks(group, sight) {
  const { lifelines, axis, place, marks, deep } = scene;
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
          click: () => goTo(i),
          mousemove: (event) => tip(event, `${seconds(run.time[i], 6)} s · ${say(i)}`),
          mouseleave: () => tip(null),
        },
        ...parts,
      ),
    );
  }
}

function drawBrackets(group) {
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

function drawAxis(group, left, right, sight) {
  const { axis, place, height } = scene;
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
        shape("text", { class: "small", x: middle, y: y + 25, "text-anchor": "middle" }, said),
      );
      freeBelow = middle + textWidth(said) / 2;
    }
    before = time;
    if (x - free < 62) continue;
    group.append(
      shape("line", { x1: x, x2: x, y1: y, y2: y + 4, stroke: "var(--muted)" }),
      shape("text", { class: "small", x, y: y + 14, "text-anchor": "middle" }, seconds(time)),
    );
    free = x;
  }
}

function drawCursor() {
  if (!scene?.svg) return;
  const n =
    scene.place.get(view.rows[view.place]) ??
    Math.max(0, firstAfter(scene.rows, run.time[view.rows[view.place]]) - 1);
  const x = scene.axis.x[n];
  const y = scene.lifelines.get(run.lifeline[scene.rows[n]]);
  scene.cursor.replaceChildren(
    shape("line", {
      x1: x,
      x2: x,
      y1: 0,
      y2: scene.height - 30,
      stroke: "var(--ink)",
      "stroke-width": 1,
      opacity: 0.6,
    }),
  );
  if (y !== undefined) {
    scene.cursor.append(
      shape("circle", {
        cx: x,
        cy: y,
        r: 13,
        fill: "none",
        stroke: "var(--ink)",
        "stroke-width": 2,
      }),
    );
  }
  const holder = $("scroll");
  if (x < holder.scrollLeft + 40 || x > holder.scrollLeft + holder.clientWidth - 60) {
    holder.scrollLeft = x - holder.clientWidth / 2;
  }
}
