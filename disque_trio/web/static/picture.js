// A job's timeline as a file, which is the picture that simulated runs have.

import { open } from "./dialog.js";
import { element } from "./elements.js";

const SLOT = "<!-- put:data -->"; // where the server's page wants the data

export async function save(id, content) {
  try {
    const answer = await fetch("/picture", { cache: "no-cache" });
    if (!answer.ok) throw new Error(`the server says ${answer.status}`);
    const page = await answer.text();
    download(`${id.replace(/[^\w-]/g, "_")}.html`, page.replace(SLOT, () => embedded(content)), "text/html");
  } catch ({ message }) {
    open(() => ["Save as picture", element("p", {}, `The picture was not saved: ${message}.`)]);
  }
}

// JSON that cannot end the script element around it.
function embedded(value) {
  return JSON.stringify(value).replace(/[<\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function download(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
