// The x of events: at their true times, or with enough room for each mark.

const TICK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];

// Round times, about one per `room` pixels.
export function ticks(start, end, width, room = 90) {
  const span = (end - start) / 1e6;
  const wanted = Math.max(1, width / room);
  const fine = 10 ** Math.floor(Math.log10(Math.max(span / wanted, 1e-6)));
  const small = [fine, 2 * fine, 5 * fine, 10 * fine];
  const step =
    (span / wanted < 1 ? small : [...TICK_STEPS, 864000]).find((s) => span / s <= wanted) ?? 864000;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let n = Math.ceil(start / 1e6 / step - 1e-9); n * step <= end / 1e6 + 1e-9; n++) {
    found.push({ time: n * step * 1e6, text: `${(n * step).toFixed(digits)} s` });
  }
  return found;
}

// The width of a pause, in pixels: its order of magnitude.
function pause(micros, zoom) {
  return micros <= 0 ? 0 : zoom * (6 + 8 * Math.log10(1 + micros / 100));
}

// Wide enough for the events, and at least as wide as the window; then zoomed.
export function fitted(run, rows, room, wide, zoomed) {
  let fit = 1;
  let axis = byEvent(run, rows, room, fit);
  for (let round = 0; round < 4 && axis.width < wide - 8 && fit < 8; round++) {
    const zoom = Math.min(8, (fit * (wide - 90)) / Math.max(axis.width - 90, 1));
    const next = byEvent(run, rows, room, zoom);
    if (next.width > wide) break;
    [axis, fit] = [next, zoom];
  }
  return zoomed === 1 ? axis : byEvent(run, rows, room, fit * zoomed);
}

// `room(i)` is the width of the mark of row `i`. Returns `x` by place in `rows`, and `at(time)`.
function byEvent(run, rows, room, zoom) {
  const x = new Float64Array(rows.length);
  const free = new Map();
  let here = 30;
  let before = rows.length ? run.time[rows[0]] : 0;
  rows.forEach((i, place) => {
    here += pause(run.time[i] - before, zoom);
    const wide = room(i);
    if (wide) here = Math.max(here, (free.get(run.lifeline[i]) ?? 0) + wide / 2);
    x[place] = here;
    if (wide) free.set(run.lifeline[i], here + wide / 2);
    before = run.time[i];
  });
  return { x, width: here + 70, at: (time) => between(run, rows, x, time) };
}

export function byTime(run, rows, width, zoom) {
  const first = rows.length ? run.time[rows[0]] : 0;
  const last = rows.length ? run.time[rows[rows.length - 1]] : 1;
  const scale = ((width - 80) * zoom) / Math.max(last - first, 1);
  const at = (time) => 30 + (time - first) * scale;
  return {
    x: Float64Array.from(rows, (i) => at(run.time[i])),
    width: (width - 80) * zoom + 80,
    at,
  };
}

// The x of a time, which may lie between two events.
function between(run, rows, x, time) {
  const place = run.firstAfter(rows, time);
  if (place === 0) return x.length ? Math.max(0, x[0] - 20) : 0;
  if (place === rows.length) return x[place - 1] + 20;
  const left = run.time[rows[place - 1]];
  const right = run.time[rows[place]];
  return x[place - 1] + ((x[place] - x[place - 1]) * (time - left)) / Math.max(right - left, 1);
}
