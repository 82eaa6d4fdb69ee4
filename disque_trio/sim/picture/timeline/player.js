// The buttons and the slider under the diagram, and the event at the playhead in words.

import { element } from "./elements.js";
import { say, seconds } from "./sentences.js";

const STEP_MS = 350; // between two events while it plays

export class Player {
  constructor(host, timeline) {
    this.timeline = timeline;
    this.playing = null;
    const { view } = timeline;
    const button = (text, label, click) => element("button", { "aria-label": label, title: label, click }, text);
    this.button = button("play", "play (space)", () => this.play());
    this.slider = element("input", {
      type: "range",
      min: 0,
      value: 0,
      "aria-label": "event",
      input: (event) => timeline.goToPlace(Number(event.target.value)),
    });
    this.count = element("span", { class: "count" });
    this.now = element("div", { class: "now" });
    host.append(
      element(
        "div",
        { class: "buttons" },
        button("|◀", "first event", () => timeline.goToPlace(0)),
        button("◀", "event before", () => timeline.goToPlace(view.place - 1)),
        this.button,
        button("▶", "next event", () => timeline.goToPlace(view.place + 1)),
        button("▶|", "last event", () => timeline.goToPlace(Infinity)),
      ),
      this.slider,
      this.count,
      this.now,
    );
  }

  // What changes by itself is not announced.
  show({ isQuiet = false } = {}) {
    this.now.setAttribute("aria-live", isQuiet ? "off" : "polite");
    const { run, view } = this.timeline;
    const row = this.timeline.row();
    this.slider.max = Math.max(0, view.rows.length - 1);
    this.slider.value = view.place;
    if (row === undefined) {
      this.now.replaceChildren();
      this.count.textContent = "no events";
      return;
    }
    const said = say(run, row);
    this.now.replaceChildren(element("b", {}, `${seconds(run.time[row], 6)} s `), said);
    this.slider.setAttribute("aria-valuetext", said);
    this.count.textContent = `event ${view.place + 1} of ${view.rows.length}`;
  }

  // Starts, or stops.
  play() {
    const { timeline } = this;
    const isOver = () => timeline.view.place >= timeline.view.rows.length - 1;
    clearInterval(this.playing);
    if (this.playing) this.playing = null;
    else {
      if (isOver()) timeline.goToPlace(0);
      this.playing = setInterval(() => {
        timeline.goToPlace(timeline.view.place + 1);
        if (isOver()) this.play();
      }, STEP_MS);
    }
    this.button.textContent = this.playing ? "pause" : "play";
    this.button.setAttribute("aria-pressed", Boolean(this.playing));
  }
}
