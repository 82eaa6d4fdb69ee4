// Charts of the last minutes, as SVG. All of them show the same moment under the pointer.

import { app, redraw } from "./app.js";
import { element, shape } from "./elements.js";
import { UNKNOWN, clock, number, rate, span } from "./words.js";

const WIDE = 600;
const HIGH = 150;
const SECONDS = 300; // from edge to edge: as time goes on lines move, and are not squeezed
const GAP = 25; // seconds between two points that are not joined, unless samples are farther apart

// `series` have `label`, `values` and `colour` (a class). Null is a gap. `marks` are what
// happened: { at, kind, words }.
export function chart({ title, at, series, unit = "", seconds = SECONDS, period = 0, marks = [] }) {
  const scale = { seconds, period, gap: Math.max(GAP, 2.2 * period) };
  const most = ceiling(Math.max(1, ...series.flatMap(({ values }) => values.map((v) => v ?? 0))));
  const hover = app.hover === null ? null : nearest(at, app.hover, seconds);
  return element(
    "figure",
    { class: "chart" },
    element("figcaption", {}, legend(title, at, series, unit, hover, scale)),
    element(
      "div",
      { class: "plot", pointermove: point, pointerleave: leave },
      element("span", { class: "top small" }, figure(most, unit)),
      shape(
        "svg",
        {
          viewBox: `0 0 ${WIDE} ${HIGH}`,
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": spoken(title, series, unit),
        },
        [0.25, 0.5, 0.75].map((part) =>
          shape("line", { class: "grid", x1: 0, x2: WIDE, y1: HIGH * part, y2: HIGH * part }),
        ),
        series.map((one, n) => drawn(one, at, most, n === 0, scale)),
        shown(marks, at, seconds).map((one) => marked(one, at, seconds)),
        hover !== null && shape("line", { class: "hover", x1: x(at, at[hover], seconds), x2: x(at, at[hover], seconds), y1: 0, y2: HIGH }),
      ),
      element(
        "div",
        { class: "axis small" },
        element("span", {}, `${span(seconds)} ago`),
        element("span", {}, "now"),
      ),
    ),
  );
}

export function sparkline(at, values, colour) {
  if (!at?.length) return null;
  const most = Math.max(1e-9, ...values.map((value) => value ?? 0));
  return shape(
    "svg",
    { class: "spark", viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn({ values, colour }, at, most * 1.1, true, { seconds: SECONDS, gap: GAP }),
  );
}

// Those within the chart.
export const shown = (marks, at, seconds) => marks.filter((one) => one.at > at.at(-1) - seconds && one.at > at[0] && one.at <= at.at(-1) + seconds / 50);

function marked({ at: when, kind, words }, at, seconds) {
  const place = Math.min(x(at, when, seconds), WIDE - 1);
  return shape("line", { class: `mark ${kind}`, x1: place, x2: place, y1: 0, y2: HIGH }, shape("title", {}, `${words}, ${clock(when * 1000)}`));
}

function drawn({ values, colour }, at, most, isFilled, scale) {
  const line = path(at, values, most, scale);
  const filled = isFilled && line && shape("path", { class: `area ${colour}`, d: area(at, values, most, scale) });
  return [filled, shape("path", { class: `line ${colour}`, d: line })];
}

const x = (at, when, seconds) => +(WIDE * (1 - (at.at(-1) - when) / seconds)).toFixed(1);
const y = (value, most) => +(HIGH - (HIGH - 3) * (value / most)).toFixed(1);

// Pieces of neighbours that are known: where nobody looked, there is a gap, too.
function pieces(at, values, gap) {
  const found = [];
  let begun = null;
  values.forEach((value, n) => {
    const isKnown = value !== null && value !== undefined;
    if (n && at[n] - at[n - 1] > gap) begun = null;
    if (isKnown && begun === null) found.push((begun = []));
    if (isKnown) begun.push(n);
    else begun = null;
  });
  return found;
}

function path(at, values, most, { seconds, gap }) {
  const point = (n) => `${x(at, at[n], seconds)},${y(values[n], most)}`;
  return pieces(at, values, gap).map((piece) => `M${piece.map(point).join("L")}`).join("");
}

function area(at, values, most, { seconds, gap }) {
  const floor = (n) => `${x(at, at[n], seconds)},${HIGH}`;
  const point = (n) => `${x(at, at[n], seconds)},${y(values[n], most)}`;
  return pieces(at, values, gap)
    .map((piece) => `M${floor(piece[0])}L${piece.map(point).join("L")}L${floor(piece.at(-1))}Z`)
    .join("");
}

// Rates have fractions, and what is counted has none.
const figure = (value, unit) => (unit === "s" ? span(value) : unit ? `${rate(value)}${unit}` : number(value));

// Over the time that is shown: the last sample of an hour says little.
function summed(values, at, unit, { seconds, period }) {
  const known = values.filter((value, n) => value !== null && at[n] > at.at(-1) - seconds);
  if (!known.length) return UNKNOWN;
  const sum = known.reduce((one, other) => one + other, 0);
  const mean = `mean ${figure(sum / known.length, unit)}`;
  return unit === "/s" ? `${mean}, ${number(Math.round(sum * period))} in all` : mean;
}

// The next round number: 1, 2 or 5 and zeros.
function ceiling(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * size).find((step) => step >= value);
}

function nearest(at, fraction, seconds) {
  if (!at.length) return null;
  const wanted = at.at(-1) - (1 - fraction) * seconds;
  let best = 0;
  at.forEach((time, n) => {
    if (Math.abs(time - wanted) < Math.abs(at[best] - wanted)) best = n;
  });
  return best;
}

function legend(title, at, series, unit, hover, scale) {
  const isSum = hover === null && unit && scale.seconds > SECONDS;
  const n = hover ?? at.length - 1;
  return [
    element("span", { class: "chart-title" }, title),
    series.map(({ label, values, colour }) =>
      element(
        "span",
        { class: "entry" },
        element("span", { class: `swatch ${colour}`, "aria-hidden": "true" }),
        `${label} `,
        element("b", {}, isSum ? summed(values, at, unit, scale) : n < 0 || values[n] === null ? UNKNOWN : figure(values[n], unit)),
      ),
    ),
    element("span", { class: "small moment" }, hover === null ? "" : clock(at[hover] * 1000)),
  ];
}

function spoken(title, series, unit) {
  const parts = series.map(({ label, values }) => `${label} ${figure(values.at(-1), unit)}`);
  return `${title}: ${parts.join(", ")}`;
}

function point(event) {
  const { left, width } = event.currentTarget.getBoundingClientRect();
  app.hover = Math.min(1, Math.max(0, (event.clientX - left) / width));
  redraw();
}

function leave() {
  app.hover = null;
  redraw();
}
