// The cluster at the playhead: what each node has, and the events around.

import { element } from "./elements.js";
import { ACKED, DEAD, DUMMY, HELD, QUEUED, STATES, STATE_WORDS, States, TOLD, WAITING } from "./run.js";
import { say, seconds, short } from "./sentences.js";

const QUEUE_SHOWN = 8;
const EVENTS_SHOWN = 13;
const MANY_NODES = 12;

export class Moment {
  // Follows `timeline`. `clockWords(name, time)` tells of a node's clock, if it is wrong.
  constructor(host, timeline, clockWords = () => "") {
    this.timeline = timeline;
    this.clockWords = clockWords;
    this.states = new States(timeline.run);
    this.nodes = element("div", { class: "nodes" });
    this.events = element("ol", { class: "events", "aria-label": "Events" });
    host.classList.add("moment");
    host.replaceChildren(this.nodes, this.events);
    timeline.addEventListener("at", () => this.show());
  }

  show() {
    const { run, view } = this.timeline;
    const row = this.timeline.row();
    if (this.states.run !== run) this.states = new States(run);
    this.#showEvents();
    if (row === undefined) {
      this.nodes.replaceChildren(element("p", {}, "No events."));
      return;
    }
    this.states.seek(row);
    const nodes = [...run.nodes];
    const has = (node) => Number(this.states.state(node, view.job) > 0);
    if (nodes.length > MANY_NODES) nodes.sort((a, b) => has(b) - has(a) || a - b);
    this.nodes.replaceChildren(...nodes.map((node) => this.#card(node, run.time[row])));
  }

  #card(node, time) {
    const { run, view } = this.timeline;
    const name = run.lifelines[node];
    const counts = STATES.map(() => 0);
    const queued = [];
    (this.states.of.get(node) ?? []).forEach((state, job) => {
      counts[state]++;
      if (state === QUEUED) queued.push(job);
    });
    const trouble = troubleOf(run, name, time);
    const state = view.job >= 0 ? this.states.state(node, view.job) : 0;
    const condition = trouble ?? (view.job >= 0 ? STATE_WORDS[state] : "up");
    const dead = counts[DEAD] ? `${counts[DEAD]} dead, ` : "";
    const held = `${counts[WAITING] + counts[HELD]} held, ${dead}${counts[DUMMY] + counts[TOLD] + counts[ACKED]} acked`;
    return element(
      "div",
      {
        class: `node ${trouble ?? ""}`,
        style: state ? `border-left-color:var(--${STATES[state]})` : null,
      },
      element("h3", {}, element("bdi", {}, name), element("small", {}, condition)),
      ...(run.isOfOneJob
        ? []
        : [
            element("p", {}, "queue: ", ...this.#queueWords(queued)),
            element("p", {}, `${held}${this.clockWords(name, time)}`),
          ]),
    );
  }

  #queueWords(queued) {
    if (!queued.length) return ["empty"];
    const { view } = this.timeline;
    const words = queued
      .slice(0, QUEUE_SHOWN)
      .map((job) => element(job === view.job ? "mark" : "b", {}, short(job)));
    const more = queued.length - words.length;
    return [...words.flatMap((word) => [word, " "]), more ? `and ${more} more` : ""];
  }

  #showEvents() {
    const { run, view } = this.timeline;
    const middle = view.place - (EVENTS_SHOWN >> 1);
    const from = Math.max(0, Math.min(middle, view.rows.length - EVENTS_SHOWN));
    const items = view.rows.slice(from, from + EVENTS_SHOWN).map((row) =>
      element(
        "li",
        {},
        element(
          "button",
          {
            "aria-current": row === this.timeline.row(),
            click: () => this.timeline.goTo(row),
            tabindex: row === this.timeline.row() ? 0 : -1,
            title: say(run, row),
          },
          element("span", {}, seconds(run.time[row], 6)),
          element("span", {}, say(run, row)),
        ),
      ),
    );
    const hadFocus = this.events.contains(document.activeElement);
    this.events.replaceChildren(...items);
    if (hadFocus) this.events.children[view.place - from]?.firstChild.focus();
  }
}

function troubleOf(run, name, time) {
  const found = run.bars.find(
    ([what, start, end, , nodes]) =>
      (what === "crash" || what === "pause") && start <= time && time < end && nodes.includes(name),
  );
  return found && (found[0] === "crash" ? "down" : "paused");
}
