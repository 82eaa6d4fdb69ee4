// node node-redis.js PORT LOSSY_PORT PROTOCOL

"use strict";

const { createClient } = require("redis");
const { outcome, report } = require("./common.js");

const [port, lossyPort, protocol] = process.argv.slice(2).map(Number);

async function connect(to = port, options = {}) {
  const client = createClient({ url: `redis://127.0.0.1:${to}/0`, RESP: protocol, ...options });
  client.on("error", () => {}); // they are told by the commands too
  return client.connect();
}

async function main() {
  const client = await connect(port, { name: "from-node-redis" });
  const queue = `node-redis-${protocol}`;
  const call = (...words) => client.sendCommand(words.map(String));
  await report({
    ping: () => client.ping(),
    echo: () => client.echo("grüße"),
    name: () => client.clientGetName(),
    library: async () => (await client.clientInfo()).libName,
    round: async () => {
      const id = await call("ADDJOB", queue, "body", 0, "RETRY", 60);
      const [[from, got, body]] = await call("GETJOB", "FROM", queue);
      return [from, got === id, body, await call("ACKJOB", id)];
    },
    nothing: () => call("GETJOB", "NOHANG", "FROM", queue),
    waits: async () => {
      const worker = await client.duplicate().connect();
      const waiting = worker.sendCommand(["GETJOB", "FROM", queue]);
      const id = await call("ADDJOB", queue, "late", 0);
      const [[, got]] = await waiting;
      worker.destroy();
      await call("ACKJOB", id);
      return got === id;
    },
    multi: () =>
      client.multi().addCommand(["ADDJOB", queue, "body", "0"]).addCommand(["QLEN", queue]).exec(),
    afterMulti: () => call("QLEN", queue),
    pipeline: () => client.multi().addCommand(["QLEN", queue]).ping().execAsPipeline(),
    subscribe: async () => (await client.duplicate().connect()).subscribe("news", () => {}),
    commands: async () => (await client.command()).length,
    lost: async () => {
      const lossy = await connect(lossyPort);
      const told = await outcome(lossy.sendCommand(["ADDJOB", `${queue}-lost`, "body", "0"]));
      lossy.destroy();
      return [told, await call("QLEN", `${queue}-lost`)];
    },
    wrongDatabase: async () => {
      const other = createClient({ url: `redis://127.0.0.1:${port}/5`, RESP: protocol });
      return new Promise((resolve) => {
        other.on("error", (error) => {
          other.destroy();
          resolve(error.message);
        });
        other.connect().catch(() => {});
      });
    },
  });
  process.exit(0);
}

main();
