/** What stands between the thread and the composer: the connection, what went wrong, and why nothing can be asked. */

/** @import { Lock, Problem, SessionState } from "../state/session-state.js" */
/** @import { PanelHost } from "./panel-view.js" */
/** @import { ViewContext } from "./turn-element.js" */
import { h, iconButton, keepFocus, setText } from "./dom.js";
import { problemWords } from "./problem-wording.js";

/**
 * @typedef {object} NoticeActions
 * @property {PanelHost} host
 * @property {() => void} onModels Opens the list of models.
 * @property {() => HTMLElement} elsewhere What gets the focus of a notice that goes.
 */

export class PanelNotices {
  banner = h("div", { class: "banner", role: "status", hidden: true });
  problem = h("div", { class: "problem", role: "alert", hidden: true });
  lock = h("div", { class: "lock", hidden: true });
  #actions;
  /** @type {Problem | null} */
  #shownProblem = null;
  #shownLock = "";

  /**
   * @param {ViewContext} context
   * @param {NoticeActions} actions
   */
  constructor(context, actions) {
    this.context = context;
    this.#actions = actions;
  }

  /** @param {SessionState} state */
  update(state) {
    this.#showBanner(state);
    this.#showProblem(state);
    this.#showLock(state);
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
    keepFocus(this.problem, () => this.#fillProblem(problem), this.#actions.elsewhere());
  }

  /** @param {Problem | null} problem */
  #fillProblem(problem) {
    const { words, session } = this.context;
    this.problem.hidden = !problem;
    this.problem.replaceChildren();
    if (!problem) return;
    const dismiss = iconButton("close", words.dismiss, () => session.dismissProblem());
    this.problem.append(h("div", {}, ...problemWords(problem, words)), dismiss);
  }

  /** @param {SessionState} state */
  #showLock({ lock, lockProblem, isLoading }) {
    const { host, elsewhere } = this.#actions;
    const shown = isLoading ? "" : `${lock ?? ""} ${lockProblem?.message ?? ""} ${host.hasSettings}`;
    if (shown === this.#shownLock) return;
    this.#shownLock = shown;
    keepFocus(this.lock, () => this.#fillLock(isLoading ? null : lock, lockProblem), elsewhere());
  }

  /** @param {Lock} lock @param {Problem | null} problem */
  #fillLock(lock, problem) {
    const { words } = this.context;
    this.lock.hidden = !lock;
    if (!lock) return;
    const own = (/** @type {string} */ text) => [h("p", {}, text)];
    const said = (/** @type {string} */ text) => (problem ? problemWords(problem, words) : own(text));
    /** @type {Record<NonNullable<Lock>, [string, HTMLElement[]]>} */
    const shown = {
      setup: [words.lockSetup, own(words.lockSetupText)],
      chooseModel: [words.lockChoose, own(words.lockChooseText)],
      signedOut: [words.lockSignedOut, own(words.lockSignedOutText)],
      forbidden: [words.lockForbidden, said(words.lockForbiddenText)],
      unreachable: [words.lockUnreachable, said(words.lockUnreachableText)],
    };
    const [title, text] = shown[lock];
    const action = this.#lockAction(lock);
    this.lock.replaceChildren(h("h2", {}, title), ...text, ...(action ? [action] : []));
  }

  /**
   * The button that leads on.
   *
   * @param {NonNullable<Lock>} lock
   */
  #lockAction(lock) {
    const { words } = this.context;
    const { host, onModels } = this.#actions;
    const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
      h("button", { type: "button", class: "primary", onclick }, label);
    const tell = (/** @type {string} */ name) =>
      host.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true }));
    if (lock === "forbidden") return null;
    if (lock === "setup") return host.hasSettings ? button(words.settings, () => tell("fermata-settings")) : null;
    if (lock === "chooseModel") return button(words.chooseModel, onModels);
    return button(words.retry, () => {
      if (lock === "signedOut") tell("fermata-sign-in");
      host.reload();
    });
  }
}
