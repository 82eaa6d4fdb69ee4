// Descriptions of elements, and elements made like their description.
//
// A page describes itself as a whole each time; only what differs is changed, so that focus,
// selection and scrolling stay where they are. Text is only ever a text node.

// `properties` are attributes, handlers where the value is a function, and `key`, which tells one
// child from its neighbours. `host` is called with the element each time it is shown: what is in it is
// left to the host. Children that are null or false are left out.
export function element(tag, properties = {}, ...children) {
  return { tag, properties, children: wanted(children), space: null };
}

export function shape(tag, properties = {}, ...children) {
  return { ...element(tag, properties, ...children), space: "http://www.w3.org/2000/svg" };
}

export function show(host, ...children) {
  fill(host, wanted(children));
}

function wanted(children) {
  const isThere = (child) => child !== null && child !== undefined && child !== false;
  return children.flat(Infinity).filter(isThere);
}

const OWN = new Set(["key", "host"]); // of these, the browser knows nothing
const isText = (child) => typeof child !== "object";
const keyOf = (child) => (isText(child) ? undefined : child.properties.key);

function fill(parent, children) {
  const known = new Map();
  for (const node of parent.childNodes) if (node.key !== undefined) known.set(node.key, node);
  const keys = new Set(children.map(keyOf));
  let at = parent.firstChild;
  for (const child of children) {
    // What has gone is taken away first: then what stays need not move.
    while (at && at.key !== undefined && !keys.has(at.key)) at = drop(at);
    const key = keyOf(child);
    const node = key === undefined ? (at?.key === undefined ? at : null) : known.get(key);
    if (node && fits(node, child)) {
      renew(node, child);
      if (node === at) at = at.nextSibling;
      else place(parent, node, at);
    } else {
      parent.insertBefore(make(child), at);
      if (node && node === at) at = drop(at);
    }
  }
  while (at) at = drop(at);
}

function drop(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function place(parent, node, before) {
  if (parent.moveBefore) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function fits(node, child) {
  if (isText(child)) return node.nodeType === Node.TEXT_NODE;
  return node.localName === child.tag && node.key === keyOf(child);
}

function make(child) {
  if (isText(child)) return document.createTextNode(String(child));
  const node = child.space
    ? document.createElementNS(child.space, child.tag)
    : document.createElement(child.tag);
  node.key = child.properties.key;
  node.handlers = {};
  node.properties = {};
  renew(node, child);
  return node;
}

function renew(node, child) {
  if (isText(child)) {
    if (node.data !== String(child)) node.data = String(child);
    return;
  }
  const before = node.properties;
  node.properties = child.properties;
  for (const name of Object.keys(before)) {
    if (!OWN.has(name) && !(name in child.properties)) set(node, name, null);
  }
  for (const [name, value] of Object.entries(child.properties)) {
    if (!OWN.has(name) && value !== before[name]) set(node, name, value);
  }
  if (child.properties.host) child.properties.host(node);
  else fill(node, child.children);
  // A choice exists only after its options do.
  if (child.tag === "select" && child.properties.value !== before.value) {
    node.value = child.properties.value;
  }
}

function set(node, name, value) {
  if (typeof value === "function" || name in node.handlers) {
    if (!(name in node.handlers)) node.addEventListener(name, handle);
    node.handlers[name] = value;
  } else if (name === "value" || name === "checked") node[name] = value ?? "";
  // As an attribute the Content-Security-Policy would refuse it.
  else if (name === "style") node.style.cssText = value ?? "";
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}

function handle(event) {
  event.currentTarget.handlers[event.type]?.(event);
}
