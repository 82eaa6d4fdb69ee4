// Light or dark, before anything is drawn. The system decides until somebody has chosen.
"use strict";
(() => {
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    const chosen = localStorage.getItem("disque.theme");
    document.documentElement.dataset.theme = chosen ?? (isDark.matches ? "dark" : "light");
  };
  isDark.addEventListener("change", follow);
  addEventListener("storage", follow);
  follow();
})();
