// What the whole page has in common: where one is, what has been heard, what is chosen.

export const app = {
  hello: null,
  link: null,
  route: { page: "overview", name: "", args: {} },
  heard: {}, // by topic: the newest `put`
  frozenAt: null,
  every: 1000, // between looks, in milliseconds
  cursor: null, // the key of the row on which keys act
  chosen: new Set(), // keys of rows
  rows: [], // of the page's table: { key, link, actions }
  actions: [], // of the page itself
  press: null, // does what a key means on the page; false if it means nothing there
  help: [], // what the page's own keys do
  hover: null, // where the pointer is in a chart, from 0 to 1
  wants: {}, // what a page remembers until one leaves it
};

let draw = () => {};
let isDue = false;

export function drawnBy(drawing) {
  draw = drawing;
}

// A timer, for animation frames never come while the tab is hidden.
export function redraw() {
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    draw();
  }, 0);
}

export function routeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = path.split("/");
  const args = Object.fromEntries(new URLSearchParams(query));
  return { page: page || "overview", name: decoded(rest.join("/")), args };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function go(hash) {
  location.hash = hash;
}

// Another order, filter or page of the same table: no step back in the browser's history.
export function amend(changes) {
  const args = { ...app.route.args, ...changes };
  for (const [name, value] of Object.entries(args)) if (value === "") delete args[name];
  const query = new URLSearchParams(args).toString();
  const path = location.hash.split("?")[0] || "#/overview";
  history.replaceState(null, "", query ? `${path}?${query}` : path);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export const may = (operation) => (app.hello?.operations ?? []).some(({ key }) => key === operation);

export const nodes = () => app.heard.overview?.data?.nodes ?? app.heard.cluster?.data?.nodes ?? [];

// A node's name, or what of its address tells it from the others.
export function nodeName(address) {
  return nodes().find(({ node }) => node === address)?.name || address;
}

export function nodeNumber(address) {
  return Math.max(0, nodes().findIndex(({ node }) => node === address));
}
