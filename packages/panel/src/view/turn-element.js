/** One turn as it is shown: text, reasoning, tool calls, and what it came to. */

/** @import { Session } from "../state/session.js" */
/** @import { TurnItem } from "../state/thread.js" */
/** @import { RoundView } from "../state/turn-view.js" */
/** @import { Messages } from "../messages.js" */
import { describeTurnError } from "../state/problems.js";
import { isAwaitingDecision } from "../state/turn-view.js";
import { h, icon, keepFocus, setText } from "./dom.js";
import { formatCost, formatCount, formatTime } from "./format.js";
import { NewestWindow } from "./list-window.js";
import { inReadersLanguage, problemWords } from "./problem-wording.js";
import { RoundElement } from "./round-element.js";

const MIN_ROUNDS = 30;

/** @typedef {{session: Session, words: Messages, language: string}} ViewContext */

export class TurnElement {
  /** The rounds that are shown, by their place. @type {Map<number, RoundElement>} */
  #rounds = new Map();
  #window = new NewestWindow(MIN_ROUNDS);
  #earlier;
  #body = h("div", { class: "rounds" });
  #status = h("div", { class: "status", hidden: true });
  #footer = h("div", { class: "turn-footer" });
  #shownEnd = "";
  /** @type {TurnItem} */
  #item;

  /**
   * @param {ViewContext} context
   * @param {TurnItem} item
   */
  constructor(context, item) {
    this.context = context;
    this.#item = item;
    this.#earlier = h("button", {
      type: "button",
      class: "quiet earlier",
      hidden: true,
      onclick: () => this.#showOlder(),
    });
    this.element = h("article", { class: "turn", "aria-label": context.words.assistant });
    this.element.append(this.#earlier, this.#body, this.#status, this.#footer);
    this.update(item);
  }

  /** @param {TurnItem} item */
  update(item) {
    this.#item = item;
    this.#showRounds(item);
    this.#showStatus(item);
    this.#showEnd(item);
  }

  /** @param {TurnItem} item */
  #showRounds({ view, isLost }) {
    const { rounds } = view;
    const isOver = Boolean(view.end || isLost);
    const first = this.#window.firstOf(rounds.length);
    for (const [place, { element }] of this.#rounds) {
      if (place >= first && place < rounds.length) continue;
      element.remove();
      this.#rounds.delete(place);
    }
    /** @type {Element | null} */
    let next = this.#body.firstElementChild;
    for (let place = first; place < rounds.length; place += 1) {
      const shown = this.#rounds.get(place) ?? new RoundElement(this.context);
      this.#rounds.set(place, shown);
      shown.update(rounds[place], { isNewest: !isOver && place === rounds.length - 1, isOver });
      if (shown.element !== next) this.#body.insertBefore(shown.element, next);
      else next = next.nextElementSibling;
    }
    this.#earlier.hidden = first === 0;
    if (first) setText(this.#earlier, this.context.words.earlierRounds(first));
  }

  #showOlder() {
    this.#window.showOlder();
    this.update(this.#item);
    if (this.#earlier.hidden) /** @type {HTMLElement | null} */ (this.element.closest(".thread"))?.focus();
  }

  /** @param {TurnItem} item */
  #showStatus(item) {
    const { words, language } = this.context;
    const { view } = item;
    const isRunning = !view.end && !item.isStored && !item.isLost;
    this.#status.hidden = !isRunning;
    this.element.classList.toggle("running", isRunning);
    if (!isRunning) return;
    if (view.rounds.at(-1)?.calls.some(isAwaitingDecision)) setText(this.#status, words.approval.status);
    else if (view.held) setText(this.#status, words.held(formatTime(view.held.until, language)));
    else setText(this.#status, view.undoes ? words.undoing : statusWords(view.rounds.at(-1), words));
  }

  /** @param {TurnItem} item */
  #showEnd(item) {
    const { view } = item;
    const isIdle = !this.context.session.state.running && !this.context.session.state.isStarting;
    const key = JSON.stringify([view.end, view.usage, view.warnings, item.edits, item.isUndone, item.isLost, isIdle]);
    if (key === this.#shownEnd) return;
    this.#shownEnd = key;
    const thread = /** @type {HTMLElement | null} */ (this.element.closest(".thread"));
    keepFocus(this.#footer, () => this.#fillFooter(item, isIdle), thread ?? this.element);
  }

  /** @param {TurnItem} item @param {boolean} isIdle */
  #fillFooter(item, isIdle) {
    const { view } = item;
    const { words } = this.context;
    const warnings = view.warnings.map(({ message, code }) => inReadersLanguage(message, code, words));
    this.#footer.replaceChildren(
      ...warnings.map((text) => h("div", { class: "note warn" }, icon("warn"), h("p", { dir: "auto" }, text))),
    );
    if (item.isLost) this.#footer.append(this.#followButton());
    if (!view.end) return;
    this.#footer.append(...this.#describeEnd(view.end, item));
    const summary = h("div", { class: "summary" });
    if (view.usage && !view.undoes) summary.append(this.#describeUsage(view.usage));
    if (item.isUndone) summary.append(h("span", { class: "done" }, icon("undo"), this.context.words.isUndone));
    else if (item.edits) summary.append(this.#undoButton(item, isIdle));
    if (summary.childNodes.length) this.#footer.append(summary);
  }

  /** @param {Record<string, any>} end @param {TurnItem} item @returns {Node[]} */
  #describeEnd(end, item) {
    const { words, session } = this.context;
    if (end.report) return [this.#describeReport(end.report)];
    if (end.type === "cancelled") return [h("p", { class: "note" }, end.reason ?? words.stopped)];
    if (end.type !== "error") return [];
    const problem = describeTurnError(end);
    const retry = h("button", { type: "button", class: "quiet", onclick: () => session.retry(item) }, words.retry);
    const text = h("div", {}, ...problemWords(problem, words));
    return [h("div", { class: "note bad", role: "alert" }, icon("warn"), text, problem.canRetry && retry)];
  }

  /** @param {{undone: string[], skipped: {reason: string, code?: string}[]}} report */
  #describeReport({ undone, skipped }) {
    const { words } = this.context;
    const box = h(
      "div",
      { class: "note" },
      h("p", {}, undone.length ? words.undone(undone.length) : words.undoneNothing),
    );
    if (skipped.length) {
      const reasons = [...new Set(skipped.map(({ reason, code }) => inReadersLanguage(reason, code, words)))];
      box.append(
        h("p", {}, words.skipped(skipped.length)),
        h("ul", {}, ...reasons.map((reason) => h("li", {}, reason))),
      );
    }
    return box;
  }

  #followButton() {
    const { words, session } = this.context;
    return h("button", { type: "button", class: "quiet", onclick: () => session.followAgain() }, words.retry);
  }

  /** @param {Record<string, any>} usage */
  #describeUsage({ costUsd, promptTokens, completionTokens }) {
    const { words, language } = this.context;
    const [input, output] = [promptTokens, completionTokens].map((count) => formatCount(count, language));
    return h("span", { class: "cost", title: words.tokens(input, output) }, formatCost(costUsd, language));
  }

  /** @param {TurnItem} item @param {boolean} isIdle */
  #undoButton(item, isIdle) {
    const { words, session } = this.context;
    const onclick = () => session.undo(item);
    return h(
      "button",
      { type: "button", class: "quiet", "aria-label": words.undoTurn, disabled: !isIdle, onclick },
      icon("undo"),
      words.undo,
    );
  }
}

/** @param {RoundView | undefined} round @param {Messages} words */
function statusWords(round, words) {
  if (!round || (!round.text && round.reasoning && !round.calls.length)) return words.thinking;
  return words.working;
}
