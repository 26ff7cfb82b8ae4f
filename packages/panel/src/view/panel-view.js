/** The whole panel over one session. */

/** @import { Session } from "../state/session.js" */
/** @import { SessionState } from "../state/session-state.js" */
/** @import { TurnItem } from "../state/thread.js" */
/** @import { ViewContext } from "./turn-element.js" */
import { Composer } from "./composer.js";
import { h, iconButton, isInputMethod, setText } from "./dom.js";
import { listenToDrops } from "./dropped-files.js";
import { formatCount } from "./format.js";
import { PanelNotices } from "./panel-notices.js";
import { HistorySheet, ModelSheet } from "./sheets.js";
import { ThreadView } from "./thread-view.js";

/** @typedef {EventTarget & {hasSettings: boolean, reload: () => unknown}} PanelHost The element that a page has. */

export class PanelView {
  #stop = new AbortController();

  /**
   * @param {PanelHost} host
   * @param {ViewContext} context
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
    const elsewhere = () => (this.composer.text.disabled ? this.thread.element : this.composer.text);
    this.notices = new PanelNotices(context, { host, onModels: onModel, elsewhere });
    this.element = h(
      "div",
      { class: "panel" },
      this.#header(),
      this.notices.banner,
      this.thread.element,
      this.notices.lock,
      this.notices.problem,
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
    this.notices.update(state);
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
    listenToDrops(this.element, (files) => this.composer.addFiles(files), signal);
    this.element.addEventListener("keydown", (event) => {
      const { running, isStarting } = session.state;
      if (event.key === "Escape" && !isInputMethod(event) && (running || isStarting)) session.stop();
    });
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
}
