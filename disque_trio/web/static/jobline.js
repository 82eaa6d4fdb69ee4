// What has happened to a job, as a timeline that goes on.

import { app } from "./app.js";
import { element } from "./elements.js";
import { buttons, card, findings, waiting } from "./parts.js";
import { save } from "./picture.js";
import { Moment } from "./timeline/moment.js";
import { CLUSTER, Run } from "./timeline/run.js";
import { Timeline } from "./timeline/timeline.js";
import { count } from "./words.js";

const HELP = [
  ["← → Home End", "previous, next, first and last event; with Shift ten at a time"],
  ["t c", "true time scale; only events that can have caused the selected one"],
  ["+ -", "wider, narrower"],
];

let shown = null; // { host, words, timeline }

// Is what happens to the job from now on written down somewhere? If that is not known, yes.
export const isTraced = (put) => !put?.data || put.data.nodes.some(({ on }) => on);

// `trace` is the action that has it written down.
export function jobline(put, id, trace) {
  if (!put) return null;
  if (!put.data) return card("What happened", {}, waiting(put, "what happened to it"));
  const { run, why, clocks } = put.data;
  const isOn = isTraced(put);
  const lines = gaps(put.data, isOn).map((text) => ({ level: "warn", text }));
  return card(
    "What happened",
    {
      note: run && [sentences([why, `time 0 is ${run.head.zero}`]), ...clocks].join(" "),
      tools: [
        run && element("button", { title: "as a file that loads nothing", click: () => save(id, run) }, "Save as picture"),
        ...(isOn ? [] : buttons(trace ? [trace] : [])),
      ],
    },
    lines.length > 0 && findings(lines),
    !run && element("p", { class: "empty" }, isOn ? "It has had no events since its trace began." : sentences([why])),
    run && element("div", { key: id, class: "jobline", host: (node) => mount(node, id, run) }),
  );
}

const sentences = (texts) => texts.map((text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`).join(" ");

// What is not in the picture.
function gaps({ run, nodes }, isOn) {
  const omitted = nodes.reduce((sum, node) => sum + node.omitted, 0);
  return [
    ...(omitted ? [`${count(omitted, "event")} were dropped: a node keeps the first hundred of a job, and the latest`] : []),
    ...(run && !isOn ? ["The trace has ended: later events are not recorded"] : []),
  ];
}

// The same timeline as long as the same job is shown, so that the playhead stays where it is.
function mount(host, id, { run: slice, causes }) {
  app.press = (event) => shown.timeline.press(event);
  app.help = HELP;
  const words = JSON.stringify(slice);
  if (host === shown?.host && words === shown.words) return;
  const run = new Run(causes, { isOfOneJob: true });
  run.extend(slice);
  if (host === shown?.host) shown.timeline.refresh(run);
  else begin(host, id, run);
  shown.words = words;
}

function begin(host, id, run) {
  const [above, below] = [document.createElement("div"), document.createElement("div")];
  host.replaceChildren(above, below);
  const timeline = new Timeline(above, run, { isTitled: false });
  new Moment(below, timeline);
  shown = { host, timeline };
  const job = run.jobs.findIndex(([each]) => each === id);
  timeline.choose(job < 0 ? CLUSTER : job);
  timeline.goToPlace(Infinity);
}
