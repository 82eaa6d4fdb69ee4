// Operations in the sandbox: each is carried out at once, and described in a sentence.

import { app, redraw } from "./app.js";
import { element } from "./elements.js";
import { visible } from "./words.js";

export const said = { text: "", isBad: false };

// Does it, and tells what was done, or why it cannot be.
export async function steer(operation, args = {}) {
  try {
    const { says } = await app.link.plan("steer", { operation, ...args });
    // The clock itself shows whether it goes on.
    Object.assign(said, { text: operation === "pace" ? "" : visible(says.join(" ")), isBad: false });
    return true;
  } catch (error) {
    Object.assign(said, { text: visible(error.message), isBad: true });
    return false;
  } finally {
    redraw();
  }
}

export const seconds = (micros, digits = 3) => `${(micros / 1e6).toFixed(digits)} s`;

// A button for one operation, with its key in the title.
export function operationButton(label, operation, args = {}, { key = "", ...properties } = {}) {
  const click = (event) => {
    event.preventDefault();
    steer(operation, typeof args === "function" ? args() : args);
  };
  return element("button", { click, title: key ? `key ${key}` : null, ...properties }, label);
}

// For `app.press`: `keys` has what each key does.
export const presser = (keys) => (event) => {
  keys[event.key]?.(event);
  return event.key in keys;
};
