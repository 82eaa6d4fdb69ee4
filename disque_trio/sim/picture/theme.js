// Light or dark: as the system has it, until somebody chooses.

import { paintTracks } from "./overview.js";

export function followSystem() {
  if (matchMedia("(prefers-color-scheme: dark)").matches) {
    document.documentElement.dataset.theme = "dark";
  }
}

export function toggleTheme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  paintTracks();
}
