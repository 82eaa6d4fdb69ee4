// The faults of a run as bars over its time, with the playhead and what the judge found.

import { element } from "./elements.js";
import { seconds } from "./steer.js";

const LANES = 12; // more faults than that at once lie on each other
const LEAST = 0.4; // per cent of the width

// `goTo(time)` is called for a click. `findings` have `property`, `at` and `says`.
export function strip(run, time, findings, goTo) {
  const whole = run.end - run.start;
  const share = (at) => Math.max(0, Math.min(100, (100 * (at - run.start)) / whole));
  const lanes = laid(run.bars);
  const click = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    goTo(run.start + (whole * (event.clientX - box.left)) / box.width);
  };
  return element(
    "div",
    { class: "strip" },
    element(
      "div",
      { class: "strip-bars", style: `height:${Math.max(1, lanes.count) * 19 + 6}px`, click },
      run.bars.map((each, n) => bar(each, lanes.of[n], share, goTo)),
      findings.map(({ property, at, says }, n) =>
        element("i", { key: `finding ${n}`, class: "strip-finding", style: `left:${share(at)}%`, title: `${property}: ${says}`, "aria-hidden": "true" }),
      ),
      element("i", { key: "playhead", class: "strip-playhead", style: `left:${share(time)}%`, "aria-hidden": "true" }),
      !run.bars.length && element("span", { class: "quiet" }, "no faults"),
    ),
    element("div", { class: "strip-axis small", "aria-hidden": "true" }, ticks(run).map((at) => element("span", { style: `left:${share(at)}%` }, `${at / 1e6} s`))),
  );
}

function bar([what, start, end, label, , colour, isOfLinks], lane, share, goTo) {
  const words = `${what}: ${label}, ${seconds(start)}${end > start ? ` to ${seconds(end)}` : ""}`;
  const kind = isOfLinks ? "link" : colour;
  const click = (event) => {
    event.stopPropagation();
    goTo(start);
  };
  const wide = Math.max(LEAST, share(end) - share(start));
  return element(
    "button",
    { key: words, class: `strip-bar ${kind}`, style: `left:${share(start)}%;width:${wide}%;top:${lane * 19 + 3}px`, title: words, "aria-label": words, tabindex: "-1", click },
    wide > 3 ? label : "",
  );
}

// The first lane that is free again for each bar.
function laid(bars) {
  const free = [];
  const of = bars.map(([, start, end]) => {
    let lane = free.findIndex((until) => until <= start);
    if (lane < 0) lane = free.length < LANES ? free.length : free.indexOf(Math.min(...free));
    free[lane] = Math.max(end, start + 1);
    return lane;
  });
  return { of, count: free.length };
}

function ticks({ start, end }) {
  const rough = (end - start) / 8;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(start / step) * step; at < end; at += step) found.push(at);
  return found;
}
