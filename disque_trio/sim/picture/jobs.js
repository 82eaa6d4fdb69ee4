// The list of jobs, from which one is chosen.

import { page, run } from "./data.js";
import { element } from "./timeline/elements.js";
import { CLUSTER, EVERYTHING } from "./timeline/run.js";
import { short } from "./timeline/sentences.js";
import { visible } from "./timeline/text.js";

const JOBS_SHOWN = 400;

export const listed = jobList();

// Jobs with violations first, then those with duplicates, then the others in order.
function jobList() {
  const findings = new Map();
  const repeats = new Map();
  const numbers = new Map(run.jobs.map(([id], n) => [id, n]));
  for (const [prop, job] of page.head.findings) {
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

// Shows in `host` those that match the text. `choose(job)` is called for a click.
export function showJobs(host, text, chosen, choose) {
  const wanted = text.trim().toLowerCase();
  const isMatch = ({ job, prop, causes }) =>
    [short(job), ...run.jobs[job].map(String).slice(0, 2), prop ?? "", ...causes].some((words) =>
      words.toLowerCase().includes(wanted),
    );
  const found = wanted ? listed.filter(isMatch) : listed;
  const item = (job, properties, ...children) =>
    element(
      "li",
      {},
      element(
        "button",
        { "aria-current": job === chosen, ...properties, click: () => choose(job) },
        ...children,
      ),
    );
  const items = found.slice(0, JOBS_SHOWN).map((each) => {
    const [id, queue] = run.jobs[each.job];
    return item(
      each.job,
      { title: id },
      element("b", {}, short(each.job)),
      element("span", { class: "queue" }, visible(queue)),
      ...badges(each),
    );
  });
  const whole = (job, words) => item(job, {}, element("span", { class: "queue" }, words));
  const more = found.length - items.length;
  host.replaceChildren(
    ...items,
    ...(more > 0 ? [element("li", { class: "more" }, `${more} more: type to find`)] : []),
    ...(wanted ? [] : [whole(EVERYTHING, "all events"), whole(CLUSTER, "about no job")]),
  );
}

function badges({ prop, causes }) {
  const found = causes
    .filter((cause) => cause !== prop)
    .map((cause) => element("span", { class: "badge warn" }, cause));
  return prop ? [element("span", { class: "badge bad" }, prop), ...found] : found;
}
