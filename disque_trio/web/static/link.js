// The connection to the server: subscriptions, which outlive it, and running, which do not.

const PROTOCOL = "disque.console.1";
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
const GREETING_WAIT = 10_000;

export class Link {
  // `on` has `hello`, `change` (the connection came or went) and `farewell` (a sentence).
  constructor(on) {
    this.on = on;
    this.socket = null;
    this.isLive = false;
    this.lostAt = null; // milliseconds, once it has been live
    this.againAt = null;
    this.failures = 0;
    this.timer = null;
    this.last = 0;
    this.subscriptions = new Map();
    this.running = new Map();
  }

  open() {
    clearTimeout(this.timer);
    this.againAt = null;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/socket`, PROTOCOL);
    this.socket = socket;
    const patience = setTimeout(() => socket.close(), GREETING_WAIT);
    socket.addEventListener("message", (event) => {
      if (socket !== this.socket) return;
      clearTimeout(patience);
      this.#hear(JSON.parse(event.data));
    });
    socket.addEventListener("close", () => {
      clearTimeout(patience);
      if (socket === this.socket) this.#lost();
    });
    this.on.change();
  }

  // At once, when there is a reason to believe that it works now.
  openSoon() {
    if (!this.isLive && this.againAt !== null) this.open();
  }

  subscribe(topic, args, every, put) {
    const id = ++this.last;
    const subscription = { t: "sub", id, topic, args, every };
    this.subscriptions.set(id, { subscription, put });
    if (this.isLive) this.#send(subscription);
    return id;
  }

  unsubscribe(id) {
    if (this.subscriptions.delete(id) && this.isLive) this.#send({ t: "unsub", id });
  }

  // What it would do. Throws an Error with the server's sentence.
  plan(operation, args, filter) {
    return this.#ask({ t: "do", operation, args, filter });
  }

  // Does what was planned, and tells how far it has come. `begun` takes what stops it.
  carryOut(token, progress, begun) {
    return this.#ask({ t: "do", token }, progress, begun);
  }

  #ask(message, progress = () => {}, begun = () => {}) {
    const id = ++this.last;
    return new Promise((done, failed) => {
      if (!this.isLive) {
        failed(new Error("The server is not connected."));
        return;
      }
      this.running.set(id, { done, failed, progress });
      this.#send({ ...message, id });
      begun(() => this.#send({ t: "stop", id }));
    });
  }

  #send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  #hear(message) {
    const { t, id, says } = message;
    if (t === "hello") this.#greeted(message);
    else if (t === "put") this.subscriptions.get(id)?.put(message);
    else if (t === "progress") this.running.get(id)?.progress(says);
    else if (t === "bye") this.on.farewell(says);
    else if (this.running.has(id)) {
      const { done, failed } = this.running.get(id);
      this.running.delete(id);
      if (t === "error") failed(new Error(says));
      else done(message);
    } else if (t === "error") this.subscriptions.get(id)?.put({ error: says });
  }

  #greeted(message) {
    // What it does not know is not asked for.
    this.on.hello(message);
    this.isLive = true;
    this.lostAt = null;
    this.failures = 0;
    for (const { subscription } of this.subscriptions.values()) this.#send(subscription);
    this.on.change();
  }

  #lost() {
    if (this.isLive) this.lostAt = Date.now();
    this.isLive = false;
    this.failures += 1;
    for (const { failed } of this.running.values()) {
      failed(new Error("The connection was lost before the outcome arrived: check whether the operation was done."));
    }
    this.running.clear();
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (this.failures - 1));
    // Browsers that lost the same server do not all come back in the same moment.
    const apart = wait * (0.75 + Math.random() / 2);
    this.againAt = Date.now() + apart;
    this.timer = setTimeout(() => this.open(), apart);
    if (this.failures > 1) this.#logIn();
    this.on.change();
  }

  // An upgrade that is refused does not say why: a session that has ended leads to the form.
  async #logIn() {
    try {
      const headers = { Accept: "text/html" };
      const page = await fetch("/", { redirect: "manual", cache: "no-store", headers });
      if (page.type === "opaqueredirect") location.assign(`/login${location.hash}`);
    } catch {
      // The server is away: it is tried again.
    }
  }
}
