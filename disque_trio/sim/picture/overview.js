// Plots over the whole run, all on one time axis, with the faults shaded behind each.

import { page, run } from "./data.js";
import { ticks } from "./timeline/axis.js";
import { Tip, element } from "./timeline/elements.js";
import { causeColour } from "./timeline/marks.js";
import { length, seconds } from "./timeline/sentences.js";

const OUTCOMES = ["ok", "refused", "unknown"];
const tracks = [];
const tip = new Tip();
let goToTime = () => {}; // what a click on a plot does

const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function swatches(entries) {
  return entries.flatMap(([name, hue]) => [
    element(
      "span",
      { class: "entry" },
      element("i", { class: "swatch", style: `background:var(--${hue})` }),
      name,
    ),
    " ",
  ]);
}

// A labelled canvas. `draw(pen, x, height)` paints it; `read(time)` gives the values at a time.
function addTrack(parent, name, note, height, draw, read = () => "") {
  const canvas = element("canvas", { style: `height:${height}px` });
  const life = element("div", { class: "life" });
  const cursor = element("div", { class: "cursor" });
  const plot = element("div", { class: "plot" }, canvas, life, cursor);
  const small = element("small", {}, ...note);
  parent.append(
    element("div", { class: "track" }, element("div", { class: "name" }, name, small), plot),
  );
  const track = { canvas, life, cursor, height, draw };
  tracks.push(track);
  const timeAt = (event) =>
    run.start +
    ((event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth) *
      (run.end - run.start);
  plot.addEventListener("mousemove", (event) =>
    tip.show(event, `${seconds(timeAt(event))} s ${read(timeAt(event))}`),
  );
  plot.addEventListener("mouseleave", () => tip.hide());
  plot.addEventListener("click", (event) => goToTime(timeAt(event)));
}

const share = (time) => (time - run.start) / (run.end - run.start);

export function paintTracks() {
  for (const track of tracks) {
    const { canvas, height } = track;
    const width = canvas.clientWidth;
    const dense = devicePixelRatio || 1;
    canvas.width = width * dense;
    canvas.height = height * dense;
    const pen = canvas.getContext("2d");
    pen.scale(dense, dense);
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    const x = (time) => share(time) * width;
    if (track.draw !== paintAxis) shade(pen, x, height);
    track.draw(pen, x, height, width);
  }
}

function shade(pen, x, height) {
  pen.globalAlpha = 0.1;
  for (const [, start, end, , , name] of run.bars) {
    pen.fillStyle = colour(name);
    if (end > start) pen.fillRect(x(start), 0, Math.max(x(end) - x(start), 1), height);
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = colour("muted");
  pen.setLineDash([3, 3]);
  for (const time of Object.values(page.marks)) line(pen, x(time), 0, x(time), height);
  pen.setLineDash([]);
}

function line(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}

// Text with an outline, so that it can be read on any background.
function caption(pen, text, x, y) {
  pen.globalAlpha = 0.75;
  pen.fillStyle = colour("card");
  pen.fillRect(x - 2, y - 9, pen.measureText(text).width + 4, 11);
  pen.globalAlpha = 1;
  pen.fillStyle = colour("ink");
  pen.fillText(text, x, y);
}

function paintAxis(pen, x, height, width) {
  pen.fillStyle = colour("muted");
  for (const { time, text } of ticks(run.start, run.end, width)) {
    pen.fillRect(x(time), 0, 1, 4);
    pen.textAlign = x(time) < 20 ? "left" : x(time) > width - 20 ? "right" : "center";
    pen.fillText(text, x(time), 15);
  }
  pen.textAlign = "left";
}

// Bars in as few levels as possible without overlap; one without length gets room for its label.
function levels() {
  const free = [];
  return run.bars.map((bar) => {
    const wide = (run.end - run.start) * (bar[2] > bar[1] ? 0.003 : 0.07);
    let level = free.findIndex((time) => time <= bar[1]);
    if (level < 0) level = free.push(0) - 1;
    free[level] = Math.max(bar[2], bar[1]) + wide;
    return level;
  });
}

function addFaults(parent) {
  const level = levels();
  const deep = Math.min(1 + Math.max(0, ...level), 40);
  const high = Math.max(5, Math.min(17, 130 / deep));
  const draw = (pen, x) =>
    run.bars.forEach((bar, n) => paintBar(pen, x, bar, level[n] * high + 1, high - 2));
  const kinds = [...new Map(run.bars.map((bar) => [bar[0], bar[5]]))];
  const at = (time) =>
    run.bars
      .filter((bar) => bar[1] <= time && time <= bar[2])
      .map((bar) => `${bar[0]}: ${bar[3]}`)
      .join(" · ");
  const note = run.bars.length ? swatches(kinds) : ["none in this run"];
  addTrack(parent, "faults", note, Math.max(18, deep * high + 2), draw, at);
}

function paintBar(pen, x, [, start, end, label, , name], top, high) {
  const left = x(start);
  const wide = Math.max(x(end) - left, 3);
  pen.fillStyle = colour(name);
  pen.fillRect(left, top, wide, high);
  if (high < 11) return;
  const inside = end > start;
  const room = inside ? wide - 6 : 120;
  let text = label;
  while (text.length > 1 && pen.measureText(text).width > room) text = text.slice(0, -2) + "…";
  pen.fillStyle = colour(inside ? "on-mark" : "ink");
  if (text.length > 1) pen.fillText(text, left + (inside ? 3 : 6), top + high - 4);
}

function addClocks(parent) {
  const names = Object.keys(page.clocks);
  if (!names.length) return;
  const worst = Math.max(
    1,
    ...names.flatMap((name) =>
      page.clocks[name].flatMap(([, wall, mono]) => [Math.abs(wall), Math.abs(mono)]),
    ),
  );
  // Errors range from milliseconds to seconds, so the scale is logarithmic.
  const y = (error) =>
    22 - Math.sign(error) * (Math.log10(1 + Math.abs(error)) / Math.log10(1 + worst)) * 19;
  const draw = (pen, x) => {
    pen.fillStyle = colour("line");
    pen.fillRect(0, 22, x(run.end), 1);
    names.forEach((name, n) => {
      pen.strokeStyle = hue(n, names.length);
      steps(
        pen,
        page.clocks[name].map(([time, wall]) => [time, wall]),
        x,
        y,
        false,
      );
      const wall = page.clocks[name].at(-1)[1];
      pen.fillStyle = pen.strokeStyle;
      pen.fillText(
        name,
        x(run.end) - 16 * (names.length - n),
        y(wall) < 12 ? y(wall) + 12 : y(wall) - 3,
      );
    });
  };
  const read = (time) =>
    names
      .map(
        (name) =>
          `${name} wall ${signed(valueAt(page.clocks[name], time, 1))} ms, monotonic ${signed(valueAt(page.clocks[name], time, 2))} ms`,
      )
      .join(" · ");
  addTrack(parent, "clock error", [`wall, log, up to ±${length(worst * 1000)}`], 44, draw, read);
}

const hue = (n, of) => `hsl(${Math.round((360 * n) / of + 210) % 360} 65% 50%)`;
export const signed = (value) => (value > 0 ? `+${value}` : `${value ?? 0}`);

export function valueAt(points, time, column) {
  let found = 0;
  for (const point of points) {
    if (point[0] > time) break;
    found = point[column];
  }
  return found;
}

// A step curve, filled down to zero if wanted.
function steps(pen, points, x, y, isFilled) {
  if (!points.length) return;
  pen.beginPath();
  pen.moveTo(x(points[0][0]), y(isFilled ? 0 : points[0][1]));
  points.forEach(([time, value], n) => {
    pen.lineTo(x(time), y(value));
    pen.lineTo(x(n + 1 < points.length ? points[n + 1][0] : run.end), y(value));
  });
  if (isFilled) {
    pen.lineTo(x(run.end), y(0));
    pen.globalAlpha = 0.25;
    pen.fillStyle = pen.strokeStyle;
    pen.fill();
    pen.globalAlpha = 1;
  }
  pen.stroke();
}

function addBacklog(parent) {
  const { unseen, unacked } = page.curves;
  const most = Math.max(1, ...unacked.map((p) => p[1]), ...unseen.map((p) => p[1]));
  const y = (value) => 58 - (value / most) * 50;
  const last = [unseen.at(-1)[1], unacked.at(-1)[1]];
  const draw = (pen, x) => {
    pen.lineWidth = 1.5;
    pen.strokeStyle = colour("copy");
    steps(pen, unacked, x, y, true);
    pen.strokeStyle = colour("bad");
    steps(pen, unseen, x, y, true);
    pen.fillStyle = colour("muted");
    pen.fillText(most, 3, 11);
  };
  const read = (time) =>
    `· unseen ${valueAt(unseen, time, 1)} · unacked ${valueAt(unacked, time, 1)}`;
  const outcome =
    last[0] + last[1] ? `${last[0]} unseen, ${last[1]} unacked at the end` : "both end at 0";
  const note = [
    ...swatches([
      ["unseen", "bad"],
      ["unacked", "copy"],
    ]),
    element("br"),
    element("b", { style: `color:var(--${last[0] + last[1] ? "bad" : "good"})` }, outcome),
  ];
  addTrack(parent, "jobs open", note, 60, draw, read);
}

function addCopies(parent) {
  const points = page.curves.copies;
  const wanted = [...new Set(run.jobs.map((job) => job[2]))].filter(Boolean).sort();
  const most = Math.max(1, ...wanted, ...points.map((p) => p[3]));
  const y = (value) => 52 - (value / most) * 44;
  const draw = (pen, x) => {
    pen.fillStyle = colour("accent");
    pen.globalAlpha = 0.4;
    points.forEach(([time, low, , high], n) => {
      const left = x(time);
      const right = x(points[n + 1]?.[0] ?? run.end);
      if (low >= 0) {
        pen.fillRect(left, y(high) - 2, Math.max(right - left, 1), y(low) - y(high) + 4);
      }
    });
    pen.globalAlpha = 1;
    pen.strokeStyle = colour("accent");
    points.forEach(([time, low, middle], n) => {
      if (low >= 0) line(pen, x(time), y(middle), x(points[n + 1]?.[0] ?? run.end), y(middle));
    });
    pen.strokeStyle = pen.fillStyle = colour("warn");
    pen.setLineDash([5, 3]);
    for (const count of wanted) line(pen, 0, y(count), x(run.end), y(count));
    pen.setLineDash([]);
    // Labels stand beside each other, because the lines may be closer than a label is high.
    wanted.forEach((count, n) => caption(pen, `W = ${count}`, 3 + 46 * n, y(count) + 4));
  };
  const read = (time) =>
    valueAt(points, time, 1) < 0
      ? "· no open job"
      : `· copies from ${valueAt(points, time, 1)} to ${valueAt(points, time, 3)}, middle ${valueAt(points, time, 2)}`;
  addTrack(parent, "copies per open job", ["fewest, middle, most"], 56, draw, read);
}

function addDuplicates(parent) {
  const wide = Math.max(1e6, 10 ** Math.ceil(Math.log10((run.end - run.start) / 400)));
  const bins = new Map();
  for (const [, row, , cause] of run.repeats) {
    const bin = Math.floor(run.time[row] / wide);
    const causes = bins.get(bin) ?? bins.set(bin, {}).get(bin);
    causes[cause] = (causes[cause] ?? 0) + 1;
  }
  const known = Object.keys(run.causes);
  const causes = [...new Set(run.repeats.map((repeat) => repeat[3]))];
  causes.sort((a, b) => known.indexOf(a) - known.indexOf(b));
  const total = (bin) => Object.values(bin).reduce((sum, count) => sum + count, 0);
  const most = Math.max(1, ...[...bins.values()].map(total));
  const draw = (pen, x) => {
    for (const [bin, counts] of bins) {
      let top = 42;
      for (const cause of causes) {
        const high = ((counts[cause] ?? 0) / most) * 34;
        pen.fillStyle = colour(causeColour(cause));
        pen.fillRect(x(bin * wide), (top -= high), Math.max(x(wide) - x(0) - 1, 3), high);
      }
    }
    pen.fillStyle = colour("muted");
    pen.fillText(run.repeats.length ? most : "none", 3, 11);
  };
  const read = (time) =>
    Object.entries(bins.get(Math.floor(time / wide)) ?? {})
      .map(([cause, count]) => `· ${cause || "duplicate"} × ${count}`)
      .join(" ");
  const note = swatches(causes.map((cause) => [cause || "no cause known", causeColour(cause)]));
  addTrack(parent, `duplicates per ${length(wide)}`, note, 44, draw, read);
}

function addOperations(parent) {
  const lifelines = run.agents.length;
  const high = Math.max(0.2, Math.min(11, 160 / Math.max(lifelines, 1)));
  const ops = run.operations;
  const place = new Map(run.agents.map((lifeline, n) => [lifeline, n]));
  const draw = (pen, x) => {
    for (const outcome of [0, 1, 2]) {
      pen.fillStyle = colour(OUTCOMES[outcome]);
      for (let n = 0; n < ops.length; n += 5) {
        if (ops[n + 3] !== outcome) continue;
        const left = x(ops[n + 1]);
        pen.fillRect(
          left,
          place.get(ops[n]) * high,
          Math.max(x(ops[n + 2]) - left, outcome ? 2.5 : 1.2),
          Math.max(high - 1, 1),
        );
      }
    }
    if (high > 9) run.agents.forEach((lifeline, n) => caption(pen, run.lifelines[lifeline], 2, n * high + 9));
  };
  const counts = [0, 0, 0];
  for (let n = 3; n < ops.length; n += 5) counts[ops[n]]++;
  const note = swatches(OUTCOMES.map((name, n) => [`${name} ${counts[n]}`, name]));
  addTrack(parent, "client operations", note, Math.max(16, lifelines * high + 2), draw);
}

// Into `faults` and `health`. `goTo(time)` is called for a click.
export function buildOverview(faults, health, goTo) {
  goToTime = goTo;
  document.body.append(tip.box);
  addFaults(faults);
  addClocks(faults);
  addTrack(faults, "", [], 18, paintAxis);
  health.append(element("h2", {}, "The whole run"));
  for (const add of [addBacklog, addCopies, addDuplicates, addOperations]) add(health);
  addTrack(health, "", [], 18, paintAxis);
}

// Marks the chosen job's life and the time of the cursor on every plot.
export function pointTracks(rows, time) {
  const first = rows.length ? run.time[rows[0]] : run.start;
  const last = rows.length ? run.time[rows.at(-1)] : run.start;
  for (const { life, cursor } of tracks) {
    life.style.left = `${100 * share(first)}%`;
    life.style.width = `${100 * (share(last) - share(first))}%`;
    cursor.style.left = `${100 * share(time)}%`;
  }
}
