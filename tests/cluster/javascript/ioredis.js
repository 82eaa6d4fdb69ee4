// node ioredis.js PORT LOSSY_PORT PROTOCOL

"use strict";

const Redis = require("ioredis");
const { outcome, report } = require("./common.js");

const [port, lossyPort, protocol] = process.argv.slice(2).map(Number);

function connect(options = {}) {
  const client = new Redis({ port, protocol, ...options });
  client.on("error", () => {}); // they are told by the commands too
  return client;
}

// The settings of docs/clients.md.
const producer = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };

async function main() {
  const client = connect({ db: 0, connectionName: "from-ioredis" });
  const queue = `ioredis-${protocol}`;
  await report({
    ping: () => client.ping(),
    echo: () => client.echo("grüße"),
    name: () => client.client("GETNAME"),
    round: async () => {
      const id = await client.call("ADDJOB", queue, "body", 0, "RETRY", 60);
      const [[from, got, body]] = await client.call("GETJOB", "FROM", queue);
      return [from, got === id, body, await client.call("ACKJOB", id)];
    },
    nothing: () => client.call("GETJOB", "NOHANG", "FROM", queue),
    waits: async () => {
      const worker = client.duplicate();
      const waiting = worker.call("GETJOB", "FROM", queue);
      const id = await client.call("ADDJOB", queue, "late", 0);
      const [[, got]] = await waiting;
      worker.disconnect();
      await client.call("ACKJOB", id);
      return got === id;
    },
    multi: () => client.multi().call("ADDJOB", queue, "body", 0).call("QLEN", queue).exec(),
    afterMulti: () => client.call("QLEN", queue),
    pipeline: () => client.pipeline().call("QLEN", queue).ping().exec(),
    subscribe: () => client.duplicate().subscribe("news"),
    commands: async () => (await client.call("COMMAND")).length,
    lost: async () => {
      const lossy = connect({ port: lossyPort, ...producer });
      const told = await outcome(lossy.call("ADDJOB", `${queue}-lost`, "body", 0));
      lossy.disconnect();
      return [told, await client.call("QLEN", `${queue}-lost`)];
    },
    wrongDatabase: () =>
      new Promise((resolve) => {
        const other = new Redis({ port, protocol, db: 5, maxRetriesPerRequest: 0 });
        other.on("error", (error) => {
          other.disconnect();
          resolve(error.message);
        });
      }),
  });
  process.exit(0);
}

main();
