// Messages and replies, as arrows between lifelines.

import { shape } from "./elements.js";
import { ANSWERS, familyOf, nameWidth } from "./marks.js";
import { ARROW_LABELS, BAND } from "./scene.js";

// An arrow is drawn when its later end is visible, or when only its earlier end is.
export function drawArrows(scene, group, sight, isAll) {
  const isLabelled =
    isAll && sight.filter((i) => scene.run.kindOf(i) === "recv").length <= ARROW_LABELS && scene.deep > 40;
  const all = new Set(sight);
  for (const i of sight) for (const later of scene.answers.get(i) ?? []) all.add(later);
  for (const i of all) drawArrow(scene, group, i, isLabelled);
}

function drawArrow(scene, group, i, isLabelled) {
  const { run, lifelines, axis, place, answers, past } = scene;
  const y = lifelines.get(run.lifeline[i]);
  const other = lifelines.get(run.peer[i]);
  const kind = run.kindOf(i);
  if (y === undefined || other === undefined) return;
  const x = axis.x[place.get(i)];
  const start = axis.x[place.get(run.mate[i])] ?? x;
  const isDim = past && !past.has(i);
  if (kind === "recv") arrow(scene, group, start, other, x, y, messageLook(run, i, isLabelled), isDim);
  else if (kind === "lost") stub(scene, group, start, y, x, other, messageLook(run, i, isLabelled), isDim);
  else if (kind === "send" && !answers.has(i)) {
    stub(scene, group, x, y, x + 30, other, messageLook(run, i, isLabelled), isDim);
  } else if (kind === "serve" && !run.tellsDeliveries) {
    arrow(scene, group, x, y, x, other, { hue: "accent", wide: 2.5 }, isDim);
  } else if (kind === "get.deliver") {
    arrow(scene, group, start, other, x, y, { hue: "accent", wide: 2.5 }, isDim);
  } else if (kind.endsWith(".invoke")) {
    arrow(scene, group, x, y, x, other, { hue: "client", wide: 1.2 }, isDim);
  } else if (kind.endsWith(".ok") || kind.endsWith(".refused")) {
    arrow(scene, group, x, other, x, y, { hue: "client", wide: 1.2, dash: "2 3" }, isDim);
  }
}

function messageLook(run, i, isLabelled) {
  const name = run.causeOf(i);
  const left = run.folded.get(i) ?? run.folded.get(run.mate[i]);
  return {
    hue: familyOf(name),
    wide: 1.6,
    dash: ANSWERS.has(name) ? "5 3" : null,
    name,
    text: isLabelled ? `${name.toUpperCase()}${left ? ` (${left} more before)` : ""}` : "",
  };
}

function arrow(scene, group, x1, y1, x2, y2, look, isDim) {
  const stroke = `var(--${look.hue})`;
  const long = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [dx, dy] = [(x2 - x1) / long, (y2 - y1) / long];
  const end = long - BAND / 2;
  const [ex, ey] = [x1 + dx * end, y1 + dy * end];
  const head = `M${ex} ${ey}L${ex - 7 * dx + 3.5 * dy} ${ey - 7 * dy - 3.5 * dx}L${ex - 7 * dx - 3.5 * dy} ${ey - 7 * dy + 3.5 * dx}Z`;
  const parts = [
    shape("line", {
      x1,
      y1,
      x2: ex,
      y2: ey,
      stroke,
      "stroke-width": look.wide,
      "stroke-dasharray": look.dash,
    }),
    shape("path", { d: head, fill: stroke }),
  ];
  const at = look.text ? freeSpot(scene, x1, y1, x2, y2, look) : null;
  if (at !== null) {
    parts.push(
      shape(
        "text",
        {
          class: "arrow",
          x: x1 + (x2 - x1) * at,
          y: y1 + (y2 - y1) * at + 3,
          style: `fill:${stroke}`,
        },
        look.text,
      ),
    );
  }
  group.append(shape("g", { class: isDim ? "dim" : null }, ...parts));
}

// A place on the arrow where its name overlaps no other: near the start for replies, else the end.
function freeSpot(scene, x1, y1, x2, y2, { text, dash }) {
  const half = nameWidth(text) / 2;
  for (const at of dash ? [0.36, 0.5, 0.25, 0.64] : [0.64, 0.5, 0.75, 0.36]) {
    const x = x1 + (x2 - x1) * at;
    const y = y1 + (y2 - y1) * at;
    const isFree = scene.named.every(
      (other) => Math.abs(other.x - x) > other.half + half || Math.abs(other.y - y) > 11,
    );
    if (!isFree) continue;
    scene.named.push({ x, y, half });
    return at;
  }
  return null;
}

// A message that did not arrive: the arrow ends in a cross.
function stub(scene, group, x1, y1, x2, y2, look, isDim) {
  const stroke = `var(--${look.hue})`;
  const far = Math.min(0.55, 34 / Math.max(Math.abs(y2 - y1), 1));
  const x = x1 + Math.min(Math.max((x2 - x1) * far, 8), 26);
  const y = y1 + (y2 - y1) * far;
  const cross = `M${x - 4} ${y - 4}L${x + 4} ${y + 4}M${x + 4} ${y - 4}L${x - 4} ${y + 4}`;
  const parts = [
    shape("line", {
      x1,
      y1,
      x2: x,
      y2: y,
      stroke,
      "stroke-width": look.wide,
      "stroke-dasharray": look.dash,
    }),
    shape("path", { d: cross, stroke: "var(--bad)", "stroke-width": 2.2 }),
  ];
  const half = nameWidth(look.text ?? "") / 2;
  const isFree =
    look.text &&
    scene.named.every(
      (other) => Math.abs(other.x - x - 6 - half) > other.half + half || Math.abs(other.y - y) > 11,
    );
  if (isFree) {
    scene.named.push({ x: x + 6 + half, y, half });
    parts.push(
      shape(
        "text",
        { class: "arrow", x: x + 6, y: y + 3, style: `fill:${stroke};text-anchor:start` },
        look.text,
      ),
    );
  }
  group.append(shape("g", { class: isDim ? "dim" : null }, ...parts));
}
