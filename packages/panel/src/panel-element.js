/** `<fermata-panel>`: the agent panel, for any editor. */

import { languageTag, messagesFor } from "./messages.js";
import { Session } from "./state/session.js";
import { panelSheets } from "./style/panel-style.js";
import { PanelView } from "./view/panel-view.js";

/** @import { Messages } from "./messages.js" */

/** A server that renders pages has no elements, and imports this module all the same. */
const Base = globalThis.HTMLElement ?? /** @type {typeof HTMLElement} */ (class {});

/**
 * The agent panel. Give it a client, and an executor for the document:
 *
 *     const panel = document.querySelector("fermata-panel");
 *     panel.client = new Fermata({ baseUrl, token });
 *     panel.executor = executor;
 *
 * Attributes: `scope` (`site` by default), `conversation-id`, `memory` (`none` for a page that remembers itself which
 * conversation was open), `lang`, `data-theme` (`light`, `dark`). Events:
 * `fermata-settings` when a person wants to add a key (offered with `hasSettings`), `fermata-sign-in` when one who is signed
 * out wants to go on. `fermata-turn` with the turn's view after each event.
 */
export class FermataPanel extends Base {
  static observedAttributes = ["scope", "space", "conversation-id", "lang"];

  #root = this.attachShadow({ mode: "open" });
  /** @type {any} */
  #client;
  /** @type {any} */
  #executor;
  /** @type {Partial<Messages>} */
  #messages = {};
  /** Whether there is something behind the settings button. */
  #hasSettings = false;
  /** @type {Session | undefined} */
  #session;
  /** @type {PanelView | undefined} */
  #view;
  #isPlanned = false;
  /** What the session began with has changed since. */
  #isOutdated = false;
  /** What was written, and not sent, before the panel was taken out of the page or began anew. */
  #draft = { text: "", files: /** @type {File[]} */ ([]) };

  constructor() {
    super();
    this.#root.adoptedStyleSheets = panelSheets();
  }

  /** A `Fermata` of `@fermata/client`. */
  get client() {
    return this.#client;
  }
  set client(client) {
    if (client === this.#client) return;
    this.#client = client;
    this.#plan();
  }

  /** Carries out the tools of the document; the panel works without it, and then the agent can only talk. */
  get executor() {
    return this.#executor;
  }
  set executor(executor) {
    this.#executor = executor;
    if (this.#session) this.#session.executor = executor;
  }

  /** Words in place of the panel's own. */
  get messages() {
    return this.#messages;
  }
  set messages(messages) {
    this.#messages = messages;
    this.#plan();
  }

  /** Whether the panel offers to open settings; the page listens to `fermata-settings`. */
  get hasSettings() {
    return this.#hasSettings;
  }
  set hasSettings(value) {
    this.#hasSettings = Boolean(value);
    this.#view?.update();
  }

  get scope() {
    return this.getAttribute("scope") ?? "site";
  }
  set scope(scope) {
    this.setAttribute("scope", scope);
  }

  /** The content space of new conversations, `site/environment`, for an assistant that works in one. */
  get space() {
    return this.getAttribute("space") ?? undefined;
  }
  set space(space) {
    if (space === undefined || space === null) this.removeAttribute("space");
    else this.setAttribute("space", space);
  }

  get conversationId() {
    return this.#session?.state.conversation?.id ?? this.getAttribute("conversation-id") ?? undefined;
  }
  set conversationId(id) {
    if (id === undefined || id === null) this.removeAttribute("conversation-id");
    else this.setAttribute("conversation-id", id);
  }

  connectedCallback() {
    if (!this.#session || this.#isOutdated) this.#plan(); // one that was only moved goes on
  }

  disconnectedCallback() {
    queueMicrotask(() => {
      if (!this.isConnected) this.#end(); // it was not only moved
    });
  }

  /**
   * @param {string} name
   * @param {string | null} before
   * @param {string | null} value
   */
  attributeChangedCallback(name, before, value) {
    if (before === value) return;
    if (name === "conversation-id" && value && this.#session && this.isConnected) {
      if (this.#session.state.conversation?.id !== value) this.#session.openConversation(value).catch(() => {});
    } else this.#plan();
  }

  /** Ask from outside, such as from a button of the editor. @param {string} prompt */
  async ask(prompt) {
    return (await this.#session?.send(prompt)) ?? false;
  }

  /** Load anew, such as after a key was added or the person has signed in. */
  reload() {
    return this.#session?.load(this.conversationId);
  }

  focus() {
    this.#view?.focus();
  }

  /** Begin once all properties that are set together have been set. */
  #plan() {
    this.#isOutdated = true;
    if (this.#isPlanned || !this.isConnected || !this.#client) return;
    this.#isPlanned = true;
    queueMicrotask(() => {
      this.#isPlanned = false;
      if (this.isConnected && this.#client) this.#begin();
    });
  }

  #begin() {
    this.#end();
    this.#isOutdated = false;
    const language = languageTag(this.lang || document.documentElement.lang || navigator.language);
    const words = messagesFor(language, this.#messages);
    const session = new Session({
      client: this.#client,
      scope: this.scope,
      space: this.space,
      executor: this.#executor,
      storage: this.getAttribute("memory") === "none" ? null : storageOf(),
    });
    this.#session = session;
    this.#view = new PanelView(this, { session, words, language });
    this.#root.replaceChildren(this.#view.element);
    this.#view.composer.draft = this.#draft;
    session.load(this.getAttribute("conversation-id") ?? undefined);
  }

  #end() {
    if (this.#view) this.#draft = this.#view.composer.draft;
    this.#session?.close();
    this.#view?.close();
    this.#session = undefined;
    this.#view = undefined;
    this.#root.replaceChildren();
  }
}

/** The browser's storage, where a page may use it. */
function storageOf() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}
