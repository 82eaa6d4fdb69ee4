// What changes something: what follows is told first, then asked, then done, node by node. The
// operations come from the server (`observe/operations/`).

import { app, redraw } from "./app.js";
import { close, drawDialog, open } from "./dialog.js";
import { element } from "./elements.js";
import { nameWords, named, sentence, shortJob } from "./words.js";

// What may be done to what these arguments name, and is in these states. An action has `letter`,
// `label`, `target` (words), `operation`, `args`; `form` where more must be asked, `isGrave` where it
// cannot be undone.
export function offered(family, args, target, states = []) {
  const known = Object.keys(args).map((name) => name.replace(/_b64$/, ""));
  const fits = (each) =>
    each.family === family &&
    known.every((name) => each.arguments.some((one) => one.name === name)) &&
    each.arguments.every((one) => !one.is_required || one.is_asked || known.includes(one.name)) &&
    (!each.when.length || each.when.some((state) => states.includes(state)));
  return (app.hello?.operations ?? []).filter(fits).map((each) => {
    const form = each.arguments.filter((one) => one.is_asked && !known.includes(one.name));
    const { key, letter, label, is_grave: isGrave } = each;
    return { operation: key, letter, label, target, args, form: form.length ? form : null, isGrave };
  });
}

export const ofQueue = (queue) =>
  offered("queues", queue.name_b64 ? { queue_b64: queue.name_b64 } : { queue: queue.name }, nameWords(queue), [
    ...(Object.keys(queue.paused ?? {}).length ? ["paused"] : []),
    ...(queue.dead ? ["dead"] : []),
    ...(queue.limits ? ["limited"] : []),
  ]).map((action) => (action.operation === "queues limit" ? withLimits(action, queue.limits) : action));

// New limits replace all earlier ones: the form begins with those.
function withLimits(action, limits) {
  if (!limits) return action;
  const values = { ...limits, per: limits.rate_per, group_per: limits.group_rate_per };
  return { ...action, form: action.form.map((field) => ({ ...field, default: values[field.name] || null })) };
}

// A body can be edited if the whole of it is here, as text.
const isWhole = ({ body, bytes }) => typeof body === "string" && new Blob([body]).size === bytes;

export const ofJob = (id, states, job = {}) =>
  offered("jobs", { id }, shortJob(id), states).flatMap((action) => {
    if (action.operation !== "jobs edit") return [action];
    return isWhole(job) ? [{ ...action, form: action.form.map((field) => ({ ...field, default: job.body })) }] : [];
  });

export const ofFlow = ({ id, state, counts }) => offered("flows", { id }, shortJob(id), [state, ...(counts?.dead ? ["dead"] : [])]);

export const ofNode = ({ node, id, name, state }) => offered("nodes", { node: id || node }, name || node, [state]);

export const ofSchedule = ({ schedule, state }) => (schedule ? offered("schedules", { name: schedule }, schedule, [state]) : []);

// A list to choose from.
export function choices(title, actions, choose = (action) => propose([action])) {
  const line = (action, n) =>
    element(
      "li",
      {},
      element(
        "button",
        { class: action.isGrave ? "grave" : "", "data-first": n === 0, click: () => choose(action) },
        element("kbd", {}, action.letter),
        ` ${action.label}`,
        action.form && " …",
      ),
    );
  const keydown = (event) => {
    const action = actions.find(({ letter }) => letter === event.key);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    choose(action);
  };
  open(() => [
    title,
    element("ul", { class: "choices", keydown }, actions.map(line)),
  ]);
}

// What to do about a finding: its advice, and the operation that fits.
export function remedy({ level, advice, operation = "", args }) {
  if (!advice || (level !== "bad" && level !== "warn")) return null;
  const [family] = operation.split(" ");
  const states = app.hello?.operations?.find(({ key }) => key === operation)?.when ?? [];
  const target = nameWords({ name: args?.queue ?? args?.node ?? args?.worker ?? "", name_b64: args?.queue_b64 });
  const action = operation && offered(family, args, target, states).find((each) => each.operation === operation);
  return element(
    "li",
    { class: "remedy" },
    element("span", {}, sentence(advice)),
    action && element("button", { click: () => propose([action]) }, action.label, action.form && " …"),
  );
}

// Several at once: the same action on several rows.
export function propose(actions) {
  if (!actions.length) return;
  if (actions[0].form) askForm(actions);
  else plan(actions);
}

function titleOf(actions) {
  const [{ label, target }] = actions;
  if (!target) return label;
  return actions.length === 1 ? [`${label}: `, named(target)] : `${label}: ${actions.length} selected`;
}

function valueOf({ kind }, text) {
  if (kind === "flag") return text === "on";
  return kind === "number" || kind === "seconds" ? Number(text) : text;
}

function askForm(actions) {
  const [{ form }] = actions;
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const filled = form.filter(({ name }) => given.get(name));
    const more = Object.fromEntries(filled.map((field) => [field.name, valueOf(field, given.get(field.name))]));
    plan(actions.map((action) => ({ ...action, args: { ...action.args, ...more } })));
  };
  const rare = form.filter(({ is_rare: isRare }) => isRare);
  open(() => [
    titleOf(actions),
    element(
      "form",
      { submit },
      form.filter((each) => !rare.includes(each)).map(formField),
      rare.length > 0 && element("details", { class: "rare" }, element("summary", {}, "Options"), rare.map((each) => formField(each, -1))),
      element(
        "div",
        { class: "answers" },
        element("button", { type: "button", click: close }, "Back"),
        element("button", { class: "main", "data-first": form[0].choices.length > 0 }, "Show the plan"),
      ),
    ),
  ]);
}

function formField(field, n) {
  const { name, about, kind, choices: words, default: value, is_required: required, least, most } = field;
  const shared = { name, required, "data-first": n === 0 && !words.length };
  const isNumber = kind === "number" || kind === "seconds";
  // A browser shows no error inside of what is folded: the server checks those.
  const bounds = isNumber ? { type: "number", min: least ?? 1, max: most, step: kind === "seconds" ? "any" : 1 } : {};
  const input = () => {
    if (words.length) return element("select", shared, (required || value ? words : ["", ...words]).map((each) => element("option", { value: each }, each)));
    if (kind === "body") return element("textarea", { ...shared, rows: 8, spellcheck: "false", value: value ?? "" });
    if (kind === "flag") return element("input", { name, type: "checkbox", checked: value === true });
    return element("input", { ...shared, value: value ?? "", ...bounds });
  };
  return element("label", { class: "field" }, element("span", {}, about), input());
}

const MOST_SENT = 60_000; // bytes: the server closes a connection that sends larger frames

async function plan(actions) {
  const work = { actions, plans: null, typed: {}, stage: "asking", outcomes: [], stops: [] };
  open(() => [titleOf(actions), ...drawn(work)], () => stopAll(work));
  const ask = async ({ operation, args, target, label, filter }) => {
    try {
      if (new Blob([JSON.stringify(args)]).size > MOST_SENT) throw new Error(`too large for the console: use disque-trio ${operation}`);
      return { target, label, ...(await app.link.plan(operation, args, filter)) };
    } catch (error) {
      return { target, error: error.message };
    }
  };
  work.plans = await Promise.all(actions.map(ask));
  work.stage = work.plans.some(({ token }) => token) ? "planned" : "refused";
  drawDialog();
  document.querySelector("#dialog [data-first]")?.focus();
}

function stopAll(work) {
  if (work.stage === "doing") for (const stop of work.stops) stop();
}

const isReady = ({ plans, typed }) =>
  plans.every((each, n) => !each.confirm || typed[n] === wordOf(each));

// What has to be typed: the name, or, where not every keyboard has it or it is long, the operation's.
const wordOf = ({ confirm, label }) =>
  /^[!-~](?:[ -~]{0,38}[!-~])?$/.test(confirm) && !confirm.includes("  ") ? confirm : label.toLowerCase();

function drawn(work) {
  if (work.stage === "asking") return [element("p", { class: "note" }, "Making a plan …")];
  if (work.stage === "planned") return planned(work);
  const refusals = work.stage === "refused" ? work.plans.map((each, n) => told(each, n, work)) : [];
  const answers =
    work.stage === "doing"
      ? element("button", { "data-first": true, click: () => stopAll(work) }, "Stop")
      : element("button", { class: "main", "data-first": true, click: close }, "Close");
  const hasFailed = work.stage === "done" && work.outcomes.some(({ failed }) => failed?.length);
  return [
    ...refusals,
    ...work.outcomes.map(outcome),
    element("div", { class: "answers" }, hasFailed && element("button", { click: () => plan(work.actions) }, "Try again"), answers),
  ];
}

function planned(work) {
  const isGrave = work.actions.some((action) => action.isGrave);
  const needsWord = work.plans.some(({ confirm }) => confirm);
  const submit = (event) => {
    event.preventDefault();
    if (isReady(work)) carryOut(work);
  };
  return [
    element(
      "form",
      { submit },
      work.plans.map((each, n) => [told(each, n, work), asked(each, n, work)]),
      element(
        "div",
        { class: "answers" },
        element("button", { type: "button", click: close }, "Back"),
        element(
          "button",
          {
            class: isGrave ? "main grave" : "main",
            disabled: !isReady(work),
            "data-first": !needsWord,
          },
          work.actions[0].label,
        ),
      ),
    ),
  ];
}

function told({ target, says, unasked = [], error }, _n, work) {
  const isOne = !work || work.plans.length === 1;
  return [
    !isOne && element("h3", {}, named(target)),
    error
      ? element("p", { class: "outcome bad" }, sentence(error))
      : element("ul", { class: "plan" }, says.map((text) => element("li", { class: unasked.includes(text) ? "warn" : null }, sentence(text)))),
  ];
}

function asked(plan, n, work) {
  if (!plan.confirm) return null;
  const input = (event) => {
    work.typed[n] = event.target.value;
    drawDialog();
  };
  return element(
    "label",
    { class: "field" },
    element("span", {}, "To confirm, type ", element("b", {}, wordOf(plan))),
    element("input", { autocomplete: "off", spellcheck: "false", "data-first": n === 0, input }),
  );
}

async function carryOut(work) {
  work.stage = "doing";
  const one = async ({ token, target }) => {
    if (!token) return;
    const result = { target, progress: "Running …", says: [], failed: [] };
    work.outcomes.push(result);
    const progress = (text) => {
      result.progress = text;
      drawDialog();
    };
    try {
      Object.assign(result, await app.link.carryOut(token, progress, (stop) => work.stops.push(stop)));
    } catch (error) {
      result.failed = [error.message];
    }
    result.progress = "";
  };
  const done = Promise.all(work.plans.map(one));
  drawDialog();
  await done;
  work.stage = "done";
  app.chosen.clear();
  drawDialog();
  document.querySelector("#dialog [data-first]")?.focus();
  redraw();
}

function outcome({ target, progress, says, failed }, _n, all) {
  const line = (text, level, mark) =>
    element(
      "li",
      { class: level },
      element("span", { class: "sign", "aria-hidden": "true" }, mark),
      element("span", { class: "unseen" }, level === "bad" ? "failed: " : "done: "),
      element("span", {}, sentence(text)),
    );
  return [
    all.length > 1 && element("h3", {}, named(target)),
    progress && element("p", { class: "note", role: "status" }, sentence(progress)),
    element(
      "ul",
      { class: "outcome", "aria-label": "Outcome" },
      (failed ?? []).map((text) => line(text, "bad", "✖")),
      (says ?? []).map((text) => line(text, "good", "✓")),
    ),
  ];
}
