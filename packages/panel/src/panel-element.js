/** `<fermata-panel>`: the agent panel, for any editor. */

import { languageTag, messagesFor } from "./messages.js";
import { Session } from "./state/session.js";
import { panelSheets } from "./style/panel-style.js";
import { Composer } from "./view/composer.js";
import { h, iconButton, isInputMethod, keepFocus, setText } from "./view/dom.js";
import { formatCount } from "./view/format.js";
import { HistorySheet, ModelSheet } from "./view/sheets.js";
import { ThreadView } from "./view/thread-view.js";

/** @import { Lock, SessionState } from "./state/session.js" */
/** @import { TurnItem } from "./state/thread.js" */
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
  static observedAttributes = ["scope", "conversation-id", "lang"];

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

/** The whole panel over one session. */
class PanelView {
  #stop = new AbortController();
  /** @type {SessionState["problem"]} */
  #shownProblem = null;
  #shownLock = "";

  /**
   * @param {FermataPanel} host
   * @param {import("./view/turn-element.js").ViewContext} context
   */
  constructor(host, context) {
    const { session, words } = context;
    this.host = host;
    this.context = context;
    this.history = new HistorySheet(context);
    this.models = new ModelSheet(context);
    this.thread = new ThreadView(context);
    const onModel = () => this.models.open();
    this.composer = new Composer(context, { onModel, onSend: () => this.thread.scrollToEnd() });
    this.title = h("h1", { dir: "auto" }, words.panel);
    this.meter = h(
      "div",
      { class: "meter", role: "meter", hidden: true, "aria-valuemin": "0", "aria-valuemax": "100" },
      h("span"),
    );
    this.banner = h("div", { class: "banner", role: "status", hidden: true });
    this.problem = h("div", { class: "problem", role: "alert", hidden: true });
    this.lock = h("div", { class: "lock", hidden: true });
    this.element = h(
      "div",
      { class: "panel" },
      this.#header(),
      this.banner,
      this.thread.element,
      this.lock,
      this.problem,
    );
    this.element.append(
      this.composer.element,
      this.history.element,
      this.models.element,
      h("div", { class: "drop" }, words.dropHere),
    );
    this.#listen(session);
    this.update();
  }

  close() {
    this.#stop.abort();
    this.thread.close();
  }

  focus() {
    this.composer.focus();
  }

  update() {
    const { state } = this.context.session;
    const { words } = this.context;
    setText(this.title, state.conversation?.title || words.panel);
    this.thread.update();
    this.composer.update();
    this.#showMeter(state);
    this.#showBanner(state);
    this.#showProblem(state);
    this.#showLock(state);
  }

  #header() {
    const { words, session } = this.context;
    const startNew = () => {
      session.startNewChat();
      this.focus();
    };
    return h(
      "header",
      {},
      this.title,
      this.meter,
      iconButton("history", words.history, () => this.history.open()),
      iconButton("plus", words.newChat, startNew),
    );
  }

  /** @param {Session} session */
  #listen(session) {
    const { signal } = this.#stop;
    session.addEventListener("change", () => this.update(), { signal });
    session.addEventListener(
      "turn",
      (event) => {
        const item = /** @type {CustomEvent<TurnItem>} */ (event).detail;
        this.thread.changeTurn(item);
        if (item.view.context) this.#showMeter(session.state, item.view.context.contextTokens);
        this.host.dispatchEvent(new CustomEvent("fermata-turn", { detail: item.view }));
      },
      { signal },
    );
    for (const name of ["online", "offline"]) window.addEventListener(name, () => this.update(), { signal });
    this.#listenToDrops(signal);
    this.element.addEventListener("keydown", (event) => {
      const { running, isStarting } = session.state;
      if (event.key === "Escape" && !isInputMethod(event) && (running || isStarting)) session.stop();
    });
  }

  /** @param {AbortSignal} signal */
  #listenToDrops(signal) {
    const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files");
    this.element.addEventListener(
      "dragover",
      (event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        this.element.classList.add("dropping");
      },
      { signal },
    );
    this.element.addEventListener("dragleave", () => this.element.classList.remove("dropping"), { signal });
    this.element.addEventListener(
      "drop",
      (event) => {
        this.element.classList.remove("dropping");
        if (!hasFiles(event)) return;
        event.preventDefault();
        this.composer.addFiles([...(event.dataTransfer?.files ?? [])]);
      },
      { signal },
    );
  }

  /**
   * @param {SessionState} state
   * @param {number} [used]
   */
  #showMeter(state, used = state.conversation?.contextTokens) {
    const window = state.modelInfo?.contextWindow;
    const { words, language } = this.context;
    this.meter.hidden = !window || !used;
    if (!window || !used) return;
    const percent = Math.min(100, Math.round((used / window) * 100));
    const label = words.context(formatCount(used, language), formatCount(window, language));
    this.meter.setAttribute("aria-valuenow", String(percent));
    this.meter.setAttribute("aria-label", label);
    this.meter.title = label;
    this.meter.classList.toggle("full", percent > 80);
    this.meter.style.setProperty("--used", `${percent}%`);
  }

  /** @param {SessionState} state */
  #showBanner(state) {
    const { words } = this.context;
    const isOffline = !navigator.onLine || state.connection === "offline";
    const text = isOffline
      ? state.running
        ? words.offline
        : words.offlineIdle
      : state.connection === "waiting"
        ? words.reconnecting
        : "";
    this.banner.hidden = !text;
    setText(this.banner, text);
  }

  /** @param {SessionState} state */
  #showProblem({ problem }) {
    if (problem === this.#shownProblem) return; // shown anew, it would be spoken again
    this.#shownProblem = problem;
    const show = () => this.#fillProblem(problem);
    keepFocus(this.problem, show, this.composer.text);
  }

  /** @param {SessionState["problem"]} problem */
  #fillProblem(problem) {
    const { words, session } = this.context;
    this.problem.hidden = !problem;
    this.problem.replaceChildren();
    if (!problem) return;
    const hint = problem.hint && !problem.message.includes(problem.hint) && h("p", { class: "hint" }, problem.hint);
    const dismiss = iconButton("close", words.dismiss, () => session.dismissProblem());
    this.problem.append(h("div", {}, h("p", {}, problem.message), hint), dismiss);
  }

  /** @param {SessionState} state */
  #showLock({ lock, lockWords, isLoading }) {
    const shown = isLoading ? "" : `${lock ?? ""} ${lockWords} ${this.host.hasSettings}`;
    if (shown === this.#shownLock) return;
    this.#shownLock = shown;
    const fill = () => this.#fillLock(isLoading ? null : lock, lockWords);
    keepFocus(this.lock, fill, this.composer.text.disabled ? this.thread.element : this.composer.text);
  }

  /** @param {Lock} lock @param {string} lockWords */
  #fillLock(lock, lockWords) {
    const { words } = this.context;
    this.lock.hidden = !lock;
    if (!lock) return;
    const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
      h("button", { type: "button", class: "primary", onclick }, label);
    const tell = (/** @type {string} */ name) => () =>
      this.host.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true }));
    const settings = this.host.hasSettings ? button(words.settings, tell("fermata-settings")) : null;
    const again = button(words.retry, () => {
      if (lock === "signedOut") tell("fermata-sign-in")();
      this.host.reload();
    });
    /** @type {Record<NonNullable<Lock>, [string, string, Node | null]>} */
    const shown = {
      setup: [words.lockSetup, words.lockSetupText, settings],
      chooseModel: [words.lockChoose, words.lockChooseText, button(words.chooseModel, () => this.models.open())],
      signedOut: [words.lockSignedOut, words.lockSignedOutText, again],
      forbidden: [words.lockForbidden, lockWords || words.lockForbiddenText, null],
      unreachable: [words.lockUnreachable, lockWords || words.lockUnreachableText, again],
    };
    const [title, text, action] = shown[lock];
    this.lock.replaceChildren(h("h2", {}, title), h("p", {}, text), ...(action ? [action] : []));
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
