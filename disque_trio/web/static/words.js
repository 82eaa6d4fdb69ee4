// Numbers, times and names as people read them. What is not known is a dash.

import { element } from "./elements.js";
import { hex, visible } from "./timeline/text.js";

export { visible };

export const UNKNOWN = "—";

let ahead = 0; // how far the cluster's clock is ahead of this browser's, in milliseconds

export function setClock(millis) {
  ahead = millis - Date.now();
}

// Unix milliseconds by the clock of the cluster.
export const now = () => Date.now() + ahead;

const isKnown = (value) => value !== null && value !== undefined;

// Integers above 2^53 come as strings.
export function number(value) {
  if (!isKnown(value)) return UNKNOWN;
  return typeof value === "string" ? BigInt(value).toLocaleString("en") : value.toLocaleString("en");
}

export function rate(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (value === 0) return "0";
  if (value < 10) return value < 0.05 ? "<0.1" : value.toFixed(1);
  return Math.round(value).toLocaleString("en");
}

const SPANS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

// A duration in seconds: the largest unit, and the next one if it is small.
export function span(seconds) {
  if (!isKnown(seconds)) return UNKNOWN;
  const left = Math.max(0, Number(seconds));
  if (left < 10 && left % 1 !== 0) return `${left.toFixed(1)} s`;
  const at = SPANS.findIndex(([size]) => left >= size);
  if (at < 0 || at === 3) return `${Math.round(left)} s`;
  const [size, unit] = SPANS[at];
  const [below, lower] = SPANS[at + 1];
  const many = Math.floor(left / size);
  const rest = Math.floor((left % size) / below);
  return many < 10 && rest ? `${many} ${unit} ${rest} ${lower}` : `${many} ${unit}`;
}

export function inOrAgo(millis) {
  if (!isKnown(millis)) return UNKNOWN;
  const distance = (Number(millis) - now()) / 1000;
  return distance >= 0 ? `in ${span(Math.round(distance))}` : `${span(Math.round(-distance))} ago`;
}

export function clock(millis) {
  if (!isKnown(millis)) return UNKNOWN;
  const when = new Date(Number(millis));
  const time = when.toLocaleTimeString("en-GB");
  const isToday = when.toDateString() === new Date(now()).toDateString();
  return isToday ? time : `${when.toLocaleDateString("en-CA")} ${time}`;
}

export function bytes(value) {
  if (!isKnown(value)) return UNKNOWN;
  let left = Number(value);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (left < 1024) return `${left < 10 && unit !== "B" ? left.toFixed(1) : Math.round(left)} ${unit}`;
    left /= 1024;
  }
  return `${left.toFixed(1)} TiB`;
}

export function count(many, one, more = `${one}s`) {
  return `${number(many)} ${many === 1 ? one : more}`;
}

// Bytes that are no UTF-8, readable where they are ASCII.
export function fromBase64(text) {
  return Array.from(atob(text), (sign) => {
    const code = sign.charCodeAt(0);
    return code >= 32 && code < 127 ? sign : `\\x${hex(code, 2)}`;
  }).join("");
}

export function nameWords({ name, name_b64: raw }) {
  return raw ? fromBase64(raw) : visible(name);
}

// A name from outside: it can be long, and run from right to left.
export function named(text, properties = {}) {
  const said = visible(text).replace(/^ +| +$| {2,}/g, (spaces) => "␣".repeat(spaces.length));
  return element("bdi", { class: "name", title: said, ...properties }, said || "(empty)");
}

const RIGHT_TO_LEFT = "\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufeff\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}";
const FOREIGN = new RegExp(`"(.*?)"(?=[\\s:;,.)]|$)|[^\\s"]*[${RIGHT_TO_LEFT}][^\\s"]*`, "gsu");

// A sentence of the server's. Names in it, which others chose, stand between quotes; each is isolated,
// and so is every word that runs from right to left.
export function sentence(text) {
  const parts = [];
  let at = 0;
  for (const found of String(text).matchAll(FOREIGN)) {
    const [whole, name] = found;
    const said = name === undefined ? [named(whole)] : ['"', named(name), '"'];
    parts.push(visible(text.slice(at, found.index)), ...said);
    at = found.index + whole.length;
  }
  return [...parts, visible(text.slice(at))];
}

export function queueLink({ name, name_b64: raw }) {
  return raw
    ? `#/queue?b64=${encodeURIComponent(raw)}`
    : `#/queue/${encodeURIComponent(String(name).toWellFormed())}`;
}

export const jobLink = (id) => `#/job/${encodeURIComponent(id)}`;

export const flowLink = (id) => `#/flow/${encodeURIComponent(id)}`;

// The part of a job's ID that tells it from others.
export function shortJob(id) {
  const parts = String(id).split("-");
  return parts.length > 2 ? `${parts[0]}-${parts[1]}-${parts[2].slice(0, 6)}…` : String(id);
}
