// The header, the list of jobs, the filters and the keyboard; draws the page for the first time.

const JOBS_SHOWN = 400;
const FINDINGS_SHOWN = 4;

function buildHead() {
  const { head } = run;
  const verdict = head.ok === null ? "NOT JUDGED" : head.ok ? "PASS" : "FAIL";
  const copy = element(
    "button",
    {
      click: (event) => {
        navigator.clipboard?.writeText(head.replay);
        event.target.textContent = "copied";
      },
    },
    "copy",
  );
  const counts = head.counts.filter(([, count]) => count).map(countWords);
  const words = head.plan.flatMap(([name, text]) => [element("b", {}, `${name}: `), `${text}. `]);
  if (head.zero) words.push(`Time 0 is ${head.zero}. `);
  if (head.left_out) words.push(`${head.left_out} messages about no job are left out. `);
  if (head.faults.length > 4) {
    words.push(
      folded(
        "Each fault of the plan",
        head.faults.map((text) => element("li", {}, text)),
      ),
    );
  }
  if (head.doubts.length) {
    words.push(
      folded(
        "What was not judged",
        head.doubts.map((text) => element("li", {}, text)),
      ),
    );
  }
  const lines = head.findings.map(findingLine);
  const more = lines.splice(FINDINGS_SHOWN);
  if (more.length) lines.push(element("li", {}, folded(`${more.length} more`, more)));
  $("head").append(
    element("div", { id: "verdict", class: `verdict ${verdict.toLowerCase()}` }, verdict),
    element(
      "div",
      { class: "line" },
      element("h1", {}, head.scenario, element("span", { class: "seed" }, ` · seed ${head.seed}`)),
      element("div", { id: "counts" }, ...counts),
    ),
    element(
      "div",
      { class: "line" },
      element("code", {}, head.replay),
      copy,
      element(
        "button",
        { id: "theme", title: "light or dark (d)", click: toggleTheme },
        "light / dark",
      ),
    ),
    element("ul", { id: "findings" }, ...lines),
    element("div", { id: "plan" }, ...words),
  );
}

function countWords([name, count, remark]) {
  const hue = name === "lost" ? "bad" : name === "duplicates" ? "warn" : "";
  return element(
    "span",
    { class: hue },
    `${name} `,
    element("b", {}, count.toLocaleString("en")),
    remark ? ` (${remark})` : "",
  );
}

function folded(title, items) {
  return element("details", {}, element("summary", {}, title), element("ul", {}, ...items));
}

function findingLine([prop, job, time, text]) {
  const number = run.jobs.findIndex(([id]) => id === job);
  const promise = run.head.properties[prop];
  const where =
    number < 0
      ? ""
      : element(
          "button",
          {
            click: () => {
              choose(number);
              goToTime(time);
            },
          },
          short(number),
        );
  return element(
    "li",
    {},
    element("b", {}, prop),
    promise ? element("i", {}, ` ${promise} — `) : " ",
    text,
    " ",
    where,
    ` at ${seconds(time)} s`,
  );
}

// Jobs with violations first, then those with duplicates, then the others in order.
function jobList() {
  const findings = new Map();
  const repeats = new Map();
  const numbers = new Map(run.jobs.map(([id], n) => [id, n]));
  for (const [prop, job] of run.head.findings) {
    if (!findings.has(numbers.get(job))) findings.set(numbers.get(job), prop);
  }
  for (const [job, , , cause] of run.repeats) {
    repeats.set(job, [...(repeats.get(job) ?? []), cause || "dup"]);
  }
  const rank = (job) => (findings.has(job) ? 0 : repeats.has(job) ? 1 : 2);
  const order = run.jobs.map((_, job) => job).sort((a, b) => rank(a) - rank(b) || a - b);
  return order.map((job) => ({
    job,
    prop: findings.get(job),
    causes: [...new Set(repeats.get(job) ?? [])],
  }));
}

const listed = jobList();

function showJobs() {
  const wanted = $("search").value.trim().toLowerCase();
  const isMatch = ({ job, prop, causes }) =>
    [short(job), ...run.jobs[job].map(String).slice(0, 2), prop ?? "", ...causes].some((text) =>
      text.toLowerCase().includes(wanted),
    );
  const found = wanted ? listed.filter(isMatch) : listed;
  const items = found.slice(0, JOBS_SHOWN).map(jobItem);
  const whole = wanted
    ? []
    : [wholeItem(EVERYTHING, "all events"), wholeItem(CLUSTER, "about no job")];
  const more = found.length - items.length;
  $("jobs").replaceChildren(
    ...items,
    ...(more > 0 ? [element("li", { class: "more" }, `${more} more: type to find`)] : []),
    ...whole,
  );
}

function jobItem({ job, prop, causes }) {
  const badges = causes
    .filter((cause) => cause !== prop)
    .map((cause) => element("span", { class: "badge warn" }, cause));
  if (prop) badges.unshift(element("span", { class: "badge bad" }, prop));
  return element(
    "li",
    {},
    element(
      "button",
      {
        "aria-current": String(job === view.job),
        title: run.jobs[job][0],
        click: () => choose(job),
      },
      element("b", {}, short(job)),
      element("span", { class: "queue" }, run.jobs[job][1]),
      ...badges,
    ),
  );
}

function wholeItem(job, text) {
  return element(
    "li",
    {},
    element(
      "button",
      { "aria-current": String(job === view.job), click: () => choose(job) },
      element("span", { class: "queue" }, text),
    ),
  );
}

function choose(job) {
  view.job = job;
  view.rows = rowsAbout(job);
  view.place = 0;
  $("slider").max = Math.max(0, view.rows.length - 1);
  showJobs();
  showCaption();
  showFilters();
  drawDiagram();
  const repeat = run.repeats.find(([of]) => of === job);
  const finding = run.head.findings.find(([, id]) => job >= 0 && id === run.jobs[job][0]);
  if (finding) goToTime(finding[2]);
  else if (repeat) goTo(repeat[1]);
  else goToPlace(0);
}

function showCaption() {
  const [id, queue] = run.jobs[view.job] ?? ["", ""];
  const said =
    view.job >= 0
      ? [
          element("h2", {}, `Job ${short(view.job)}`),
          queue ? `queue ${queue}` : "",
          element("code", {}, id),
        ]
      : [element("h2", {}, view.job === EVERYTHING ? "All events" : "Events about no job")];
  const toggle = (text, title, isOn, click) =>
    element("button", { title, "aria-pressed": String(isOn), click }, text);
  $("caption").replaceChildren(
    ...said,
    element(
      "span",
      { class: "push" },
      toggle(
        "causes only",
        "only what can have led to the chosen event (c)",
        view.isPastOnly,
        togglePast,
      ),
      toggle("true time", "events at their true distance (t)", view.isTrueTime, toggleTime),
      toggle("−", "narrower", false, () => zoom(1 / 1.5)),
      toggle("+", "wider", false, () => zoom(1.5)),
    ),
  );
}

function showFilters() {
  const kinds = [...new Set(view.rows.filter(isMessage).map(causeOf))];
  kinds.sort((a, b) => Object.keys(FAMILIES).indexOf(a) - Object.keys(FAMILIES).indexOf(b));
  const lifelines =
    run.nodes.length <= 30
      ? run.nodes.map((name, lifeline) => chip(view.hiddenLifelines, lifeline, name))
      : [];
  const messages = kinds.map((kind) =>
    chip(
      view.hiddenKinds,
      kind,
      kind.toUpperCase(),
      element("i", {
        class: ANSWERS.has(kind) ? "answer" : "",
        style: `color:var(--${familyOf(kind)})`,
      }),
    ),
  );
  const keys = STATES.slice(1).map((name, n) =>
    element(
      "span",
      { class: "key" },
      element("span", { style: `background:var(--${name})` }),
      STATE_WORDS[n + 1],
    ),
  );
  $("filters").replaceChildren(
    ...lifelines,
    element("span", { class: "gap" }),
    ...messages,
    element("span", { class: "gap" }),
    ...(view.job >= 0 ? keys : []),
  );
}

// A pressed chip is shown; a click hides what it stands for.
function chip(hidden, what, name, ...before) {
  const flip = () => {
    if (!hidden.delete(what)) hidden.add(what);
    showFilters();
    drawDiagram();
    goToPlace(view.place);
  };
  return element(
    "button",
    { "aria-pressed": String(!hidden.has(what)), click: flip, title: `show or hide ${name}` },
    ...before,
    name,
  );
}

function togglePast() {
  view.isPastOnly = !view.isPastOnly;
  showCaption();
  drawWindow();
}
function toggleTime() {
  view.isTrueTime = !view.isTrueTime;
  view.zoom = 1;
  showCaption();
  drawDiagram();
}
function zoom(by) {
  view.zoom = Math.min(200, Math.max(0.2, view.zoom * by));
  drawDiagram();
}

function toggleTheme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  paintTracks();
}

function nextJob(by) {
  const at = listed.findIndex(({ job }) => job === view.job);
  const next = listed[Math.max(0, Math.min(at + by, listed.length - 1))];
  if (next) choose(next.job);
  document.querySelector("#jobs [aria-current='true']")?.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  ArrowLeft: (event) => goToPlace(view.place - (event.shiftKey ? 10 : 1)),
  ArrowRight: (event) => goToPlace(view.place + (event.shiftKey ? 10 : 1)),
  Home: () => goToPlace(0),
  End: () => goToPlace(Infinity),
  " ": play,
  n: () => nextJob(1),
  p: () => nextJob(-1),
  t: toggleTime,
  c: togglePast,
  d: toggleTheme,
  "+": () => zoom(1.5),
  "-": () => zoom(1 / 1.5),
  "/": () => $("search").focus(),
};

function onKey(event) {
  const { target } = event;
  const isTyping = target.id === "search";
  if (isTyping && event.key === "Escape") target.blur();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  if (event.key === " " && target.tagName === "BUTTON") return;
  event.preventDefault();
  KEYS[event.key](event);
}

function build() {
  if (matchMedia("(prefers-color-scheme: dark)").matches) {
    document.documentElement.dataset.theme = "dark";
  }
  buildHead();
  buildPlayer();
  buildOverview();
  $("search").addEventListener("input", showJobs);
  let isDue = false;
  $("scroll").addEventListener("scroll", () => {
    if (isDue || !scene || scene.rows.length <= DRAW_ALL) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      drawWindow();
    });
  });
  document.addEventListener("keydown", onKey);
  addEventListener("resize", () => {
    paintTracks();
    drawDiagram();
  });
  choose(listed.length ? listed[0].job : CLUSTER);
  paintTracks();
}

build();
