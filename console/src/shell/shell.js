/** The frame around all pages: navigation, the page, and what was said last. */

import { announce, h, icon, iconButton, problemView } from "../dom.js";
import { hasSecret } from "../session.js";
import { words } from "../words/index.js";
import { nextTheme, themeName } from "./theme.js";

/** @import { Session } from "../session.js" */
/** @typedef {{session: Session, client: any, signal: AbortSignal, open: (path: string) => void}} PageContext */
/** @typedef {{path: keyof typeof words.shell.pages, shape: any, load: () => Promise<{show: ShowPage}>,
 * loadAhead?: () => Promise<any>}} PageEntry `loadAhead` loads what the page itself would load later. */
/** @typedef {(target: HTMLElement, context: PageContext, rest: string) => void | Promise<void>} ShowPage */

/** @type {PageEntry[]} */
export const PAGES = [
  {
    path: "editor",
    shape: "editor",
    load: () => import("../pages/editor.js"),
    loadAhead: () => import("../editor/load-ahead.js"),
  },
  { path: "content", shape: "content", load: () => import("../pages/content.js") },
  { path: "studio", shape: "studio", load: () => import("../pages/studio.js") },
  { path: "usage", shape: "usage", load: () => import("../pages/usage.js") },
  { path: "turns", shape: "turns", load: () => import("../pages/turns.js") },
  { path: "approvals", shape: "approvals", load: () => import("../pages/approvals.js") },
  { path: "policy", shape: "policy", load: () => import("../pages/policy.js") },
  { path: "providers", shape: "providers", load: () => import("../pages/providers.js") },
  { path: "models", shape: "models", load: () => import("../pages/models.js") },
  { path: "budgets", shape: "budgets", load: () => import("../pages/budgets.js") },
  { path: "tools", shape: "tools", load: () => import("../pages/tools.js") },
  { path: "webhooks", shape: "webhooks", load: () => import("../pages/webhooks.js") },
];

export class Shell {
  #stop = new AbortController();

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.main = h("main", { id: "page", tabIndex: -1 });
    this.links = PAGES.map(({ path, shape }) => h("a", { href: `#/${path}` }, icon(shape), words.shell.pages[path]));
    this.menu = iconButton("menu", words.shell.menu, () => this.#toggleMenu(), { "aria-expanded": "false" });
    this.menu.classList.add("menu-button");
    this.nav = h(
      "nav",
      { "aria-label": words.shell.console },
      h("div", { class: "links" }, ...this.links),
      this.#tools(),
    );
    this.offline = h("div", { class: "offline", role: "status", hidden: navigator.onLine });
    this.offline.textContent = words.shell.offline;
    this.element = h(
      "div",
      { class: "shell" },
      h(
        "a",
        { class: "skip", href: "#page", onclick: (/** @type {Event} */ event) => this.#skip(event) },
        words.shell.skip,
      ),
      h("div", { class: "side" }, this.#brand(), this.nav),
      h("div", { class: "content" }, this.offline, this.main),
      h("div", { id: "announcements", role: "status" }),
    );
    addEventListener("hashchange", () => hasSecret(location.hash) || this.show());
    for (const name of ["offline", "online"])
      addEventListener(name, () => {
        this.offline.hidden = navigator.onLine;
      });
    this.show();
  }

  /** Show the page that the address names. */
  async show() {
    const page = findPage(location.hash);
    const [, ...rest] = splitHash(location.hash);
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    document.title = `${words.shell.pages[page.path]} · Fermata`;
    this.#markLink(page);
    for (const dialog of document.querySelectorAll("dialog")) dialog.close(); // it asked for the page before
    const target = h("div", { class: `page page-${page.path}` });
    this.main.replaceChildren(target);
    const open = (/** @type {string} */ to) => {
      location.hash = `#/${to}`;
    };
    try {
      const { show } = await page.load().catch(() => Promise.reject(new Error(words.shell.notLoaded)));
      if (signal.aborted) return;
      const context = { session: this.session, client: this.session.client, signal, open };
      await show(target, context, decode(rest.join("/")));
    } catch (error) {
      if (!signal.aborted) target.replaceChildren(problemView(error, () => this.show()));
    }
  }

  #brand() {
    const name = h("a", { class: "brand", href: "#/editor" }, h("img", { src: "./icon.svg", alt: "" }), "Fermata");
    return h("div", { class: "brand-row" }, name, this.menu);
  }

  #tools() {
    const name = h("span", {}, themeName());
    const change = () => {
      nextTheme();
      name.textContent = themeName();
      announce(themeName());
    };
    const leave = () => this.session.signOut().catch((error) => announce(error.message));
    return h(
      "div",
      { class: "tools" },
      h("button", { type: "button", onclick: change }, icon("theme"), name),
      h("button", { type: "button", onclick: leave }, icon("out"), words.shell.signOut),
    );
  }

  /** @param {PageEntry} page */
  #markLink(page) {
    for (const link of this.links) {
      if (link.hash === `#/${page.path}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.#toggleMenu(false);
  }

  #toggleMenu(isOpen = !this.nav.classList.contains("open")) {
    this.nav.classList.toggle("open", isOpen);
    this.menu.setAttribute("aria-expanded", String(isOpen));
  }

  /** @param {Event} event */
  #skip(event) {
    event.preventDefault();
    this.main.focus();
  }
}

/** @param {string} hash */
function splitHash(hash) {
  return hash.replace(/^#\//, "").split("/");
}

/** @param {string} hash @returns {PageEntry} The first page for an address that names none. */
export function findPage(hash) {
  const [path] = splitHash(hash);
  return PAGES.find((entry) => entry.path === path) ?? PAGES[0];
}

/** @param {string} text Part of an address, which somebody may have cut. */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
