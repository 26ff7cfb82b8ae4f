/** The console: signs in, and shows the page that the address names. */

import { adoptTokens } from "@fermata/panel/tokens";
import { h, problemView } from "./dom.js";
import { Session } from "./session.js";
import { Shell } from "./shell/shell.js";
import { applyTheme } from "./shell/theme.js";

adoptTokens();
applyTheme();
const app = /** @type {HTMLElement} */ (document.querySelector("#app"));

/** @param {Session} session */
function signedOutView(session) {
  const url = session.config.signInUrl;
  const action = url ? h("a", { class: "button primary", href: url }, "Sign in") : null;
  return h(
    "main",
    { class: "signed-out" },
    h("img", { src: "./icon.svg", alt: "", width: 48, height: 48 }),
    h("h1", {}, "Sign in"),
    h("p", { role: "status" }, ...codeInWords(session.problem)),
    action,
  );
}

/** @param {string} words Commands in it are between backquotes. */
function codeInWords(words) {
  return words.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

async function begin() {
  try {
    const session = await Session.open();
    app.replaceChildren(session.isSignedIn ? new Shell(session).element : signedOutView(session));
  } catch (error) {
    app.replaceChildren(h("main", { class: "signed-out" }, problemView(error, begin)));
  }
}

begin();
