// What changes something: what follows is told first, then asked, then done, node by node.

import { app, may, redraw } from "./app.js";
import { close, drawDialog, open } from "./dialog.js";
import { element } from "./elements.js";
import { visible } from "./words.js";

// An action has `letter`, `label`, `target` (words), `verb`, `args`; `form` where it needs to know
// more, `isGrave` where it cannot be undone.

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

// Several at once: the same action on several rows.
export function propose(actions) {
  const allowed = actions.filter(({ verb }) => may(verb));
  if (!allowed.length) return;
  if (allowed[0].form) askForm(allowed);
  else plan(allowed);
}

function titleOf(actions) {
  const [{ label, target }] = actions;
  return actions.length === 1 ? `${label}: ${target}` : `${label}: ${actions.length} chosen`;
}

function askForm(actions) {
  const [{ form }] = actions;
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const value = ({ name, type }) => (type === "number" ? Number(given.get(name)) : given.get(name));
    const more = Object.fromEntries(form.map((field) => [field.name, value(field)]));
    plan(actions.map((action) => ({ ...action, args: { ...action.args, ...more } })));
  };
  const field = ({ name, label: words, ...properties }, n) =>
    element(
      "label",
      { class: "field" },
      element("span", {}, words),
      element("input", { name, required: true, "data-first": n === 0, ...properties }),
    );
  open(() => [
    titleOf(actions),
    element(
      "form",
      { submit },
      form.map(field),
      element(
        "div",
        { class: "answers" },
        element("button", { type: "button", click: close }, "Cancel"),
        element("button", { class: "main" }, "Show the plan"),
      ),
    ),
  ]);
}

async function plan(actions) {
  const deed = { actions, plans: null, typed: {}, stage: "asking", outcomes: [], stops: [] };
  open(() => [titleOf(actions), ...drawn(deed)], () => stopAll(deed));
  const ask = async ({ verb, args, target }) => {
    try {
      return { target, ...(await app.link.plan(verb, args)) };
    } catch (error) {
      return { target, error: error.message };
    }
  };
  deed.plans = await Promise.all(actions.map(ask));
  deed.stage = deed.plans.some(({ token }) => token) ? "planned" : "refused";
  drawDialog();
  document.querySelector("#dialog [data-first]")?.focus();
}

function stopAll(deed) {
  if (deed.stage === "doing") for (const stop of deed.stops) stop();
}

const isReady = ({ plans, typed }) =>
  plans.every(({ confirm }, n) => !confirm || typed[n] === confirm);

function drawn(deed) {
  if (deed.stage === "asking") return [element("p", { class: "note" }, "Asking what follows …")];
  if (deed.stage === "planned") return planned(deed);
  const refusals = deed.stage === "refused" ? deed.plans.map((each, n) => told(each, n, deed)) : [];
  const answers =
    deed.stage === "doing"
      ? element("button", { "data-first": true, click: () => stopAll(deed) }, "Stop")
      : element("button", { class: "main", "data-first": true, click: close }, "Close");
  return [
    ...refusals,
    ...deed.outcomes.map(outcome),
    element("div", { class: "answers" }, answers),
  ];
}

function planned(deed) {
  const isGrave = deed.actions.some((action) => action.isGrave);
  const needsWord = deed.plans.some(({ confirm }) => confirm);
  const submit = (event) => {
    event.preventDefault();
    if (isReady(deed)) carryOut(deed);
  };
  return [
    element(
      "form",
      { submit },
      deed.plans.map((each, n) => [told(each, n, deed), asked(each, n, deed)]),
      element(
        "div",
        { class: "answers" },
        element("button", { type: "button", click: close }, "Cancel"),
        element(
          "button",
          {
            class: isGrave ? "main grave" : "main",
            disabled: !isReady(deed),
            "data-first": !needsWord,
          },
          deed.actions[0].label,
        ),
      ),
    ),
  ];
}

function told({ target, says, error }, _n, deed) {
  const isOne = !deed || deed.plans.length === 1;
  return [
    !isOne && element("h3", {}, element("bdi", {}, target)),
    error
      ? element("p", { class: "outcome bad" }, error)
      : element("ul", { class: "plan" }, says.map((text) => element("li", {}, element("bdi", {}, visible(text))))),
  ];
}

function asked({ confirm }, n, deed) {
  if (!confirm) return null;
  const input = (event) => {
    deed.typed[n] = event.target.value;
    drawDialog();
  };
  return element(
    "label",
    { class: "field" },
    element("span", {}, "To go on, type ", element("b", {}, element("bdi", {}, visible(confirm)))),
    element("input", { autocomplete: "off", spellcheck: "false", "data-first": n === 0, input }),
  );
}

async function carryOut(deed) {
  deed.stage = "doing";
  const one = async ({ token, target }) => {
    if (!token) return;
    const result = { target, progress: "On its way …", says: [], failed: [] };
    deed.outcomes.push(result);
    const progress = (text) => {
      result.progress = text;
      drawDialog();
    };
    try {
      Object.assign(result, await app.link.carryOut(token, progress, (stop) => deed.stops.push(stop)));
    } catch (error) {
      result.failed = [error.message];
    }
    result.progress = "";
  };
  const done = Promise.all(deed.plans.map(one));
  drawDialog();
  await done;
  deed.stage = "done";
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
      element("bdi", {}, visible(text)),
    );
  return [
    all.length > 1 && element("h3", {}, element("bdi", {}, target)),
    progress && element("p", { class: "note", role: "status" }, progress),
    element(
      "ul",
      { class: "outcome", "aria-label": "Outcome" },
      (failed ?? []).map((text) => line(text, "bad", "✖")),
      (says ?? []).map((text) => line(text, "good", "✓")),
    ),
  ];
}
