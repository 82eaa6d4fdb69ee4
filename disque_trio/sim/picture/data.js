// The data of the page.

import { Run } from "./timeline/run.js";

export const page = JSON.parse(document.getElementById("run").textContent);
export const run = new Run(page.causes);
run.extend(page.run);
