// The cluster at the time of the cursor: moves are applied, or undone, as the slider moves.

const MOVE = 5;
const QUEUE_SHOWN = 8;
const EVENTS_SHOWN = 13;
const cluster = { states: new Uint8Array(run.jobs.length * run.nodes.length), applied: 0 };
let movesByJob = null;

function movesOf(job) {
  if (!movesByJob) {
    movesByJob = new Map();
    for (let n = 0; n < run.moves.length; n += MOVE) {
      const [row, of, lifeline, before, after] = run.moves.slice(n, n + MOVE);
      if (!movesByJob.has(of)) movesByJob.set(of, []);
      movesByJob.get(of).push([row, lifeline, before, after]);
    }
  }
  return movesByJob.get(job) ?? [];
}

// Applies or undoes moves until the states are those after row `last`.
function seek(last) {
  const moves = run.moves;
  const { states } = cluster;
  let n = cluster.applied;
  for (; n < moves.length && moves[n] <= last; n += MOVE) {
    states[moves[n + 2] * run.jobs.length + moves[n + 1]] = moves[n + 4];
  }
  for (; n > 0 && moves[n - MOVE] > last; n -= MOVE) {
    states[moves[n - MOVE + 2] * run.jobs.length + moves[n - MOVE + 1]] = moves[n - MOVE + 3];
  }
  cluster.applied = n;
}

function showMoment() {
  const row = view.rows[view.place];
  if (row === undefined) return $("nodes").replaceChildren(element("p", {}, "No events."));
  seek(row);
  const lifelines = run.nodes.map((_, lifeline) => lifeline);
  const of = (lifeline) => cluster.states[lifeline * run.jobs.length + view.job] ?? 0;
  if (lifelines.length > 12) lifelines.sort((a, b) => Boolean(of(b)) - Boolean(of(a)) || a - b);
  $("nodes").replaceChildren(
    ...lifelines.map((lifeline) => nodeCard(run.nodes[lifeline], lifeline, run.time[row])),
  );
  $("now").replaceChildren(element("b", {}, `${seconds(run.time[row], 6)} s `), say(row));
  $("slider").value = view.place;
  $("slider").setAttribute("aria-valuetext", say(row));
  $("count").textContent = `event ${view.place + 1} of ${view.rows.length}`;
  showEvents();
}

function nodeCard(name, lifeline, time) {
  const jobs = run.jobs.length;
  const here = cluster.states.subarray(lifeline * jobs, (lifeline + 1) * jobs);
  const queued = [];
  const counts = STATES.map(() => 0);
  here.forEach((state, job) => {
    counts[state]++;
    if (state === QUEUED) queued.push(job);
  });
  const trouble = run.bars
    .filter(
      ([what, start, end, , nodes]) =>
        (what === "crash" || what === "pause") &&
        start <= time &&
        time < end &&
        nodes.includes(name),
    )
    .map(([what]) => (what === "crash" ? "down" : "paused"));
  const state = view.job >= 0 ? here[view.job] : 0;
  const condition = trouble[0] ?? (view.job >= 0 ? STATE_WORDS[state] : "up");
  return element(
    "div",
    {
      class: `node ${trouble[0] ?? ""}`,
      style: state ? `border-left-color:var(--${STATES[state]})` : null,
    },
    element("h3", {}, name, element("small", {}, condition)),
    element("p", {}, "queue: ", ...queueWords(queued)),
    element(
      "p",
      {},
      `${counts[WAITING] + counts[HELD]} held, ${counts[DEAD] ? `${counts[DEAD]} dead, ` : ""}${counts[DUMMY] + counts[TOLD] + counts[ACKED]} acked${clockWords(name, time)}`,
    ),
  );
}

function queueWords(queued) {
  if (!queued.length) return ["empty"];
  const words = queued
    .slice(0, QUEUE_SHOWN)
    .map((job) => element(job === view.job ? "mark" : "b", {}, short(job)));
  const more = queued.length - words.length;
  return [...words.flatMap((word) => [word, " "]), more ? `and ${more} more` : ""];
}

function clockWords(name, time) {
  const wall = run.clocks[name] ? valueAt(run.clocks[name], time, 1) : 0;
  return wall ? `, wall clock ${signed(wall)} ms` : "";
}

function showEvents() {
  const from = Math.max(
    0,
    Math.min(view.place - (EVENTS_SHOWN >> 1), view.rows.length - EVENTS_SHOWN),
  );
  $("events").replaceChildren(
    ...view.rows.slice(from, from + EVENTS_SHOWN).map((row) =>
      element(
        "li",
        {},
        element(
          "button",
          {
            "aria-current": String(row === view.rows[view.place]),
            click: () => goTo(row),
            tabindex: -1,
            title: say(row),
          },
          element("span", {}, seconds(run.time[row], 6)),
          element("span", {}, say(row)),
        ),
      ),
    ),
  );
}

function goToPlace(place) {
  view.place = Math.max(0, Math.min(place, view.rows.length - 1));
  if (view.isPastOnly) drawWindow();
  else drawCursor();
  showMoment();
  pointTracks(view.rows, view.rows.length ? run.time[view.rows[view.place]] : run.start);
}

function goTo(row) {
  goToPlace(view.rows.indexOf(row));
}

function goToTime(time) {
  goToPlace(firstAfter(view.rows, time) - 1);
}

let playing = null;

function play() {
  clearInterval(playing);
  const isOver = view.place >= view.rows.length - 1;
  if (playing) playing = null;
  else {
    if (isOver) goToPlace(0);
    playing = setInterval(() => {
      goToPlace(view.place + 1);
      if (view.place >= view.rows.length - 1) play();
    }, 350);
  }
  $("play").textContent = playing ? "pause" : "play";
  $("play").setAttribute("aria-pressed", String(Boolean(playing)));
}

function buildPlayer() {
  const button = (text, label, click) =>
    element("button", { "aria-label": label, title: label, click }, text);
  const playButton = button("play", "play (space)", play);
  playButton.id = "play";
  $("player").append(
    element(
      "div",
      {},
      button("|◀", "first event", () => goToPlace(0)),
      " ",
      button("◀", "event before", () => goToPlace(view.place - 1)),
      " ",
      playButton,
      " ",
      button("▶", "next event", () => goToPlace(view.place + 1)),
      " ",
      button("▶|", "last event", () => goToPlace(Infinity)),
    ),
    element("input", {
      id: "slider",
      type: "range",
      min: 0,
      value: 0,
      "aria-label": "event",
      input: (event) => goToPlace(Number(event.target.value)),
    }),
    element("span", { id: "count" }),
    element("div", { id: "now", "aria-live": "polite" }),
  );
}
