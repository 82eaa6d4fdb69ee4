// After the login the browser goes where it wanted to go: the fragment, which stays in this browser,
// is kept by the redirect of the form.
"use strict";
const form = document.querySelector("form");
if (location.hash.startsWith("#/")) form.action += location.hash;
