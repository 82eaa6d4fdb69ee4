// The header: what ran, the result, and what was found.

import { page, run } from "./data.js";
import { element } from "./timeline/elements.js";
import { seconds, short } from "./timeline/sentences.js";
import { toggleTheme } from "./theme.js";

const FINDINGS_SHOWN = 4;

// Into `host`. `goTo(job, time)` is called for a finding's job.
export function buildHead(host, goTo) {
  const { head } = page;
  const verdict = head.ok === null ? "NOT JUDGED" : head.ok ? "PASS" : "FAIL";
  const command = element("code", {}, head.replay);
  const copy = element("button", { click: (event) => copied(command, event.target) }, "copy");
  const counts = head.counts.filter(([, count]) => count).map(countWords);
  const words = head.plan.flatMap(([name, text]) => [element("b", {}, `${name}: `), `${text}. `]);
  if (head.zero) words.push(`Time 0 is ${head.zero}. `);
  if (head.left_out) words.push(`Messages about no job are left out: ${head.left_out}. `);
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
  const lines = head.findings.map((finding) => findingLine(finding, goTo));
  const more = lines.splice(FINDINGS_SHOWN);
  if (more.length) lines.push(element("li", {}, folded(`${more.length} more`, more)));
  host.append(
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
      ...(head.replay ? [command, copy] : []),
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

// Browsers have a clipboard for pages of HTTPS and of this machine only, and may be told to refuse it.
async function copied(text, button) {
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(text);
    button.textContent = "selected: press Ctrl+C or ⌘C";
  }
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

function findingLine([prop, job, time, text], goTo) {
  const number = run.jobs.findIndex(([id]) => id === job);
  const promise = page.head.properties[prop];
  const where =
    number < 0
      ? ""
      : element(
          "button",
          {
            click: () => goTo(number, time),
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
