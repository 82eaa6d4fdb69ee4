// What the diagram shows, and the position of everything in it.

import { byTime, fitted } from "./axis.js";
import { markOf, roomFor } from "./marks.js";
import { CLUSTER, NONE } from "./run.js";
import { short } from "./sentences.js";

export const BAND = 14;
export const DRAW_ALL = 1200;
export const ARROW_LABELS = 90;
const BRACKETS_MOST = 8;

export const newView = () => ({
  job: CLUSTER,
  rows: [],
  place: 0,
  isTrueTime: false,
  zoom: 1,
  isPastOnly: false,
  hiddenLifelines: new Set(), // names
  hiddenKinds: new Set(),
});

// All positions, computed once per job, filter and zoom.
export function layOut(run, view, wide) {
  const rows = view.rows.filter((i) => isShown(run, view, i));
  const marks = new Map();
  const deliveries = new Map();
  const answers = new Map();
  for (const i of rows) {
    const job = run.job[i];
    const kind = run.kindOf(i);
    if (kind === "get.deliver") deliveries.set(job, (deliveries.get(job) ?? 0) + 1);
    const mark = markOf(run, i, deliveries.get(job));
    if (mark?.label && view.job < 0 && job !== NONE) mark.label += ` ${short(job)}`;
    if (mark) marks.set(i, mark);
    if ((kind === "recv" || kind === "lost") && run.mate[i] !== NONE) {
      answers.set(run.mate[i], [...(answers.get(run.mate[i]) ?? []), i]);
    }
  }
  const lifelines = chooseLifelines(run, view, rows);
  const room = (i) => (lifelines.y.has(run.lifeline[i]) ? roomFor(marks.get(i)) : 0);
  const axis = view.isTrueTime
    ? byTime(run, rows, wide, view.zoom)
    : fitted(run, rows, room, wide, view.zoom);
  const brackets = layBrackets(run, view, rows, axis);
  const top = 22 + 19 * (brackets.length ? 1 + Math.max(...brackets.map((b) => b.level)) : 0);
  for (const [lifeline, y] of lifelines.y) lifelines.y.set(lifeline, y + top);
  const bottom = top + lifelines.height;
  const hasCopies = view.job >= 0;
  const height = bottom + (hasCopies ? 50 : 0) + 32;
  const place = new Map(rows.map((i, n) => [i, n]));
  return {
    run,
    view,
    rows,
    marks,
    lifelines: lifelines.y,
    deep: lifelines.deep,
    brackets,
    axis,
    top,
    bottom,
    hasCopies,
    height,
    place,
    answers,
    width: Math.max(axis.width, wide),
    past: null,
  };
}

function isShown(run, view, i) {
  if (view.hiddenLifelines.has(run.lifelineOf(i))) return false;
  return (
    !run.isMessage(i) ||
    (!view.hiddenKinds.has(run.causeOf(i)) && !view.hiddenLifelines.has(run.peerOf(i)))
  );
}

// Producers above the nodes, consumers below: a job moves from top to bottom.
function chooseLifelines(run, view, rows) {
  const seen = new Set(rows.flatMap((i) => [run.lifeline[i], run.peer[i]]));
  const producers = new Set();
  for (const i of rows) if (run.kindOf(i).startsWith("add.")) producers.add(run.lifeline[i]);
  const wanted = (lifeline) =>
    !view.hiddenLifelines.has(run.lifelines[lifeline]) &&
    (seen.has(lifeline) || (run.isNode(lifeline) && run.nodes.length <= 8));
  const all = run.lifelines.map((_, lifeline) => lifeline).filter(wanted);
  const order = [
    ...all.filter((l) => producers.has(l)),
    ...all.filter((l) => run.isNode(l)),
    ...all.filter((l) => !run.isNode(l) && !producers.has(l)),
  ];
  const deep = Math.max(18, Math.min(54, 560 / Math.max(order.length, 1)));
  return {
    y: new Map(order.map((lifeline, n) => [lifeline, (n + 0.6) * deep])),
    height: order.length * deep,
    deep,
  };
}

// A bracket above each duplicate, from the delivery before it; levels keep brackets apart.
function layBrackets(run, view, rows, axis) {
  const place = new Map(rows.map((i, n) => [i, n]));
  const free = [];
  return run.repeats
    .filter(([job, row]) => job === view.job && place.has(row))
    .map(([, row, before, cause]) => {
      const first = place.has(before) ? before : row;
      const x1 = axis.x[place.get(first)];
      const x2 = axis.x[place.get(row)];
      const said = `${cause || (run.plannedBy(row) ?? "duplicate")}${run.causes[cause] ? `: ${run.causes[cause]}` : ""}`;
      const half = 3.4 * said.length;
      // Its text is inside if there is room, else to its right, or to its left at the right end.
      const behind = x2 + half + 8;
      const isWide = x2 - x1 > 2 * half + 24;
      const middle = isWide
        ? (x1 + x2) / 2
        : behind + half < axis.width
          ? behind
          : Math.max(x1 - half - 8, half + 4);
      let level = free.findIndex((end) => end <= Math.min(x1, middle - half));
      if (level < 0) level = free.length < BRACKETS_MOST ? free.push(0) - 1 : BRACKETS_MOST - 1;
      free[level] = Math.max(x2, middle + half) + 4;
      return { row, first, x1, x2, middle, said, cause, level };
    });
}

// Rows that may have caused row `i`: earlier ones of its lifeline, and sends of what it received.
export function pastOf(scene, i) {
  const { run } = scene;
  const past = new Set();
  const latest = new Map();
  const before = new Map();
  for (const row of scene.rows) {
    before.set(row, latest.get(run.lifeline[row]));
    latest.set(run.lifeline[row], row);
  }
  const open = [i];
  while (open.length) {
    const row = open.pop();
    if (row === undefined || row === NONE || past.has(row)) continue;
    past.add(row);
    open.push(before.get(row), run.mate[row]);
    if (run.kindOf(row) === "get.deliver" || run.kindOf(row).endsWith(".ok")) {
      open.push(latestOn(scene, run.peer[row], row));
    }
  }
  return past;
}

function latestOn({ run, rows, place }, lifeline, row) {
  for (let n = place.get(row) - 1; n >= 0; n--) {
    if (run.lifeline[rows[n]] === lifeline) return rows[n];
  }
  return NONE;
}
