// The timeline of a run: the diagram of one job or of all, what it shows, and the playhead.

import { Diagram } from "./diagram.js";
import { element } from "./elements.js";
import { MEANINGS, ANSWERS, FAMILIES, familyOf } from "./marks.js";
import { Player } from "./player.js";
import { CLUSTER, EVERYTHING, STATES, STATE_WORDS } from "./run.js";
import { newView } from "./scene.js";
import { say, short } from "./sentences.js";
import { visible } from "./text.js";

const CHIPS_MOST = 30;

// Into `host` it puts all that it is made of. It tells of
//   `choose` (detail: job) when another job, CLUSTER or EVERYTHING is shown, and of
//   `at` (detail: row, or undefined if there is none) when the playhead has moved.
export class Timeline extends EventTarget {
  // `isTitled`: it names the job that it shows.
  constructor(host, run, { isTitled = true } = {}) {
    super();
    this.run = run;
    this.view = newView();
    this.isTitled = isTitled;
    this.parts = ["caption", "filters", "lifelines", "player"].map((name) => element("div", { class: name }));
    const [caption, filters, lifelines, player] = this.parts;
    this.caption = caption;
    this.filters = filters;
    this.diagram = new Diagram(lifelines, (row) => this.goTo(row));
    this.player = new Player(player, this);
    host.classList.add("timeline");
    host.replaceChildren(...this.parts);
  }

  // Shows a job from its first event on, or what is no job: CLUSTER, EVERYTHING.
  choose(job) {
    this.view.job = job;
    this.view.rows = this.run.rowsAbout(job);
    this.view.place = 0;
    this.draw();
    this.dispatchEvent(new CustomEvent("choose", { detail: job }));
    this.goToPlace(0);
  }

  // Takes a slice of rows. At the last event, the playhead goes along.
  extend(slice) {
    this.run.extend(slice);
    this.refresh();
  }

  // Draws anew what is shown, after the run has got rows or has become another one.
  refresh(run = this.run) {
    const { view } = this;
    const isAtEnd = view.place >= view.rows.length - 1;
    const [before, row] = [this.run, this.row()];
    this.run = run;
    view.rows = run.rowsAbout(view.job);
    view.place = this.#inside(isAtEnd ? Infinity : this.#placeOf(before, row));
    this.draw();
    this.goToPlace(view.place, { isQuiet: true });
  }

  // Where a row of the run before is now: another run may have numbered it otherwise.
  #placeOf(before, row) {
    const { run } = this;
    const { rows } = this.view;
    if (run === before) return rows.indexOf(row);
    const [time, said] = [before.time[row], say(before, row)];
    const last = run.firstAfter(rows, time) - 1;
    for (let n = last; n >= 0 && run.time[rows[n]] === time; n--) {
      if (say(run, rows[n]) === said) return n;
    }
    return last;
  }

  draw() {
    this.#showCaption();
    this.#showFilters();
    this.diagram.draw(this.run, this.view);
  }

  row() {
    return this.view.rows[this.view.place];
  }

  goToPlace(place, said = {}) {
    this.view.place = this.#inside(place);
    if (this.view.isPastOnly) this.diagram.drawWindow();
    else this.diagram.drawCursor();
    this.player.show(said);
    this.dispatchEvent(new CustomEvent("at", { detail: this.row() }));
  }

  #inside(place) {
    return Math.max(0, Math.min(place, this.view.rows.length - 1));
  }

  goTo(row) {
    this.goToPlace(this.view.rows.indexOf(row));
  }

  goToTime(time) {
    this.goToPlace(this.run.firstAfter(this.view.rows, time) - 1);
  }

  // Does what a key means; false if it means nothing here.
  press({ key, shiftKey }) {
    const { view } = this;
    const step = shiftKey ? 10 : 1;
    const todo = {
      ArrowLeft: () => this.goToPlace(view.place - step),
      ArrowRight: () => this.goToPlace(view.place + step),
      Home: () => this.goToPlace(0),
      End: () => this.goToPlace(Infinity),
      t: () => this.toggleTime(),
      c: () => this.togglePast(),
      "+": () => this.zoom(1.5),
      "-": () => this.zoom(1 / 1.5),
    }[key];
    todo?.();
    return Boolean(todo);
  }

  togglePast() {
    this.view.isPastOnly = !this.view.isPastOnly;
    this.#showCaption();
    this.diagram.drawWindow();
  }

  toggleTime() {
    this.view.isTrueTime = !this.view.isTrueTime;
    this.view.zoom = 1;
    this.draw();
  }

  zoom(by) {
    this.view.zoom = Math.min(200, Math.max(0.2, this.view.zoom * by));
    this.diagram.draw(this.run, this.view);
  }

  #showCaption() {
    const toggle = (text, title, isOn, click) =>
      element("button", { title, "aria-pressed": isOn, click }, text);
    this.caption.replaceChildren(
      ...(this.isTitled ? this.#title() : []),
      element(
        "span",
        { class: "push" },
        toggle(
          "causes only",
          "only what can have led to the chosen event (c)",
          this.view.isPastOnly,
          () => this.togglePast(),
        ),
        toggle("true time", "events at their true distance (t)", this.view.isTrueTime, () => this.toggleTime()),
        element("button", { title: "narrower (-)", "aria-label": "narrower", click: () => this.zoom(1 / 1.5) }, "−"),
        element("button", { title: "wider (+)", "aria-label": "wider", click: () => this.zoom(1.5) }, "+"),
      ),
    );
  }

  #title() {
    const { job } = this.view;
    if (job < 0) return [element("h2", {}, job === EVERYTHING ? "All events" : "Events about no job")];
    const [id, queue] = this.run.jobs[job] ?? ["", ""];
    return [
      element("h2", {}, `Job ${short(job)}`),
      element("bdi", {}, queue ? `queue ${visible(queue)}` : ""),
      element("code", {}, id),
    ];
  }

  #showFilters() {
    const { run, view } = this;
    const kinds = [...new Set(view.rows.filter((i) => run.isMessage(i)).map((i) => run.causeOf(i)))];
    const order = Object.keys(FAMILIES);
    kinds.sort((a, b) => order.indexOf(a) - order.indexOf(b));
    const nodes = run.nodes.length <= CHIPS_MOST ? run.nodes.map((node) => run.lifelines[node]) : [];
    const sign = (kind) =>
      element("i", {
        class: ANSWERS.has(kind) ? "answer" : "",
        style: `color:var(--${familyOf(kind)})`,
      });
    const states = STATES.slice(1).map((name, n) =>
      element("span", { class: "legend" }, element("i", { style: `background:var(--${name})` }), STATE_WORDS[n + 1]),
    );
    this.filters.replaceChildren(
      ...nodes.map((name) => this.#chip(view.hiddenLifelines, name, name)),
      element("span", { class: "gap" }),
      ...kinds.map((kind) => this.#chip(view.hiddenKinds, kind, kind.toUpperCase(), sign(kind))),
      element("span", { class: "gap" }),
      ...(view.job > CLUSTER ? states : []),
    );
  }

  // A pressed chip is shown; a click hides what it stands for.
  #chip(hidden, what, name, ...before) {
    const flip = () => {
      if (!hidden.delete(what)) hidden.add(what);
      this.draw();
      this.goToPlace(this.view.place);
    };
    return element(
      "button",
      { "aria-pressed": !hidden.has(what), click: flip, title: `show or hide ${name}`, "data-means": MEANINGS[what] ?? null },
      ...before,
      name,
    );
  }
}
