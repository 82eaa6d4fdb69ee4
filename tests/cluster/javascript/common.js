// What both clients do with a node: each claim of tests/cluster/test_node_clients.py by its name.

"use strict";

/** The reply, or the text of the error. */
async function outcome(promise) {
  try {
    return await promise;
  } catch (error) {
    return { error: error.message };
  }
}

/** Print what came of each step, as one JSON object. */
async function report(steps) {
  const results = {};
  for (const [name, step] of Object.entries(steps)) {
    results[name] = (await outcome(step())) ?? null;
  }
  console.log(JSON.stringify(results));
}

module.exports = { outcome, report };
