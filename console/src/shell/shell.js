/** The frame around all pages: navigation, the page, and what was said last. */

import { announce, h, icon, iconButton, problemView } from "../dom.js";
import { nextTheme, themeName } from "./theme.js";

/** @import { Session } from "../session.js" */
/** @typedef {{session: Session, client: any, signal: AbortSignal, open: (path: string) => void}} PageContext */
/** @typedef {{path: string, title: string, shape: any, load: () => Promise<{show: ShowPage}>}} PageEntry */
/** @typedef {(target: HTMLElement, context: PageContext, rest: string) => void | Promise<void>} ShowPage */

/** @type {PageEntry[]} */
export const PAGES = [
  { path: "editor", title: "Editor", shape: "editor", load: () => import("../pages/editor.js") },
  { path: "usage", title: "Usage", shape: "usage", load: () => import("../pages/usage.js") },
  { path: "turns", title: "Turns", shape: "turns", load: () => import("../pages/turns.js") },
  { path: "providers", title: "Providers", shape: "providers", load: () => import("../pages/providers.js") },
  { path: "models", title: "Models", shape: "models", load: () => import("../pages/models.js") },
  { path: "budgets", title: "Budgets", shape: "budgets", load: () => import("../pages/budgets.js") },
];

export class Shell {
  #stop = new AbortController();

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.main = h("main", { id: "page", tabIndex: -1 });
    this.links = PAGES.map(({ path, title, shape }) => h("a", { href: `#/${path}` }, icon(shape), title));
    this.menu = iconButton("menu", "Menu", () => this.#toggleMenu(), { "aria-expanded": "false" });
    this.menu.classList.add("menu-button");
    this.nav = h("nav", { "aria-label": "Console" }, h("div", { class: "links" }, ...this.links), this.#tools());
    this.offline = h("div", { class: "offline", role: "status", hidden: navigator.onLine });
    this.offline.textContent = "You are offline. What you see may be old; it is loaded again when you are back.";
    this.element = h(
      "div",
      { class: "shell" },
      h(
        "a",
        { class: "skip", href: "#page", onclick: (/** @type {Event} */ event) => this.#skip(event) },
        "Skip to the page",
      ),
      h("div", { class: "side" }, this.#brand(), this.nav),
      h("div", { class: "content" }, this.offline, this.main),
      h("div", { id: "announcements", role: "status" }),
    );
    addEventListener("hashchange", () => this.show());
    addEventListener("offline", () => this.#showConnection());
    addEventListener("online", () => this.#showConnection());
    this.show();
  }

  /** Show the page that the address names. */
  async show() {
    const [path, ...rest] = location.hash.replace(/^#\//, "").split("/");
    const page = PAGES.find((entry) => entry.path === path) ?? PAGES[0];
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    document.title = `${page.title} · Fermata`;
    this.#markLink(page);
    const target = h("div", { class: `page page-${page.path}` });
    this.main.replaceChildren(target);
    const open = (/** @type {string} */ to) => {
      location.hash = `#/${to}`;
    };
    try {
      const { show } = await page.load();
      if (signal.aborted) return;
      const context = { session: this.session, client: this.session.client, signal, open };
      await show(target, context, decodeURIComponent(rest.join("/")));
    } catch (error) {
      if (!signal.aborted) target.replaceChildren(problemView(error, () => this.show()));
    }
  }

  #brand() {
    const name = h("a", { class: "brand", href: "#/editor" }, h("img", { src: "./icon.svg", alt: "" }), "Fermata");
    return h("div", { class: "brand-row" }, name, this.menu);
  }

  #tools() {
    const name = h("span", {}, `${themeName()} theme`);
    const change = () => {
      nextTheme();
      name.textContent = `${themeName()} theme`;
      announce(`Theme: ${themeName().toLowerCase()}`);
    };
    const leave = () => this.session.signOut();
    return h(
      "div",
      { class: "tools" },
      h("button", { type: "button", onclick: change }, icon("theme"), name),
      h("button", { type: "button", onclick: leave }, icon("out"), "Sign out"),
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

  #showConnection() {
    this.offline.hidden = navigator.onLine;
    if (navigator.onLine && !location.hash.startsWith("#/editor")) this.show();
  }

  /** @param {Event} event */
  #skip(event) {
    event.preventDefault();
    this.main.focus();
  }
}
