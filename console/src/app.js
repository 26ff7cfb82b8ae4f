/** The console: signs in, and shows the page that the address names. */

import { adoptTokens } from "@fermata/panel/tokens";
import { h, problemView } from "./dom.js";
import { hasSecret, Session } from "./session.js";
import { findPage, Shell } from "./shell/shell.js";
import { applyTheme } from "./shell/theme.js";
import { LANGUAGE, words } from "./words/index.js";

document.documentElement.lang = LANGUAGE;
adoptTokens();
applyTheme();
const app = /** @type {HTMLElement} */ (document.querySelector("#app"));

/**
 * Load what the page of this address consists of while the session is asked for. What fails here is told where it is needed.
 *
 * @param {string} hash
 */
function loadAhead(hash) {
  const page = new URLSearchParams(hash.slice(1)).get("open");
  const entry = findPage(page ? `#/${page}` : hash);
  entry.load().catch(() => {});
  entry.loadAhead?.().catch(() => {});
}

/** @param {Session} session */
function signedOutView(session) {
  const url = session.config.signInUrl;
  const action = url ? h("a", { class: "button primary", href: url }, words.signIn) : null;
  return h(
    "main",
    { class: "signed-out" },
    h("img", { src: "./icon.svg", alt: "", width: 48, height: 48 }),
    h("h1", {}, words.signIn),
    h("p", { role: "status" }, ...codeInWords(session.problem)),
    action,
  );
}

/** @param {string} text Commands in it are between backquotes. */
function codeInWords(text) {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

async function begin() {
  loadAhead(location.hash);
  try {
    const session = await Session.open();
    app.replaceChildren(session.isSignedIn ? new Shell(session).element : signedOutView(session));
  } catch (error) {
    app.replaceChildren(h("main", { class: "signed-out" }, problemView(error, begin)));
  }
}

// a link that is opened in the window of the console changes only what is behind the #
addEventListener("hashchange", () => hasSecret(location.hash) && location.reload());
begin();
