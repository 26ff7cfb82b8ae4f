/** One turn as it is shown: text, reasoning, tool calls, and what it came to. */

/** @import { Session } from "../state/session.js" */
/** @import { TurnItem } from "../state/thread.js" */
/** @import { CallView, RoundView } from "../state/turn-view.js" */
/** @import { Messages } from "../messages.js" */
import { describeTurnError } from "../state/problems.js";
import { h, icon, keepFocus, setText } from "./dom.js";
import { formatCost, formatCount, formatTime } from "./format.js";
import { MarkdownView } from "./markdown.js";
import { describeCall } from "./tool-names.js";

const MAX_INPUT = 10_000;

/** @typedef {{session: Session, words: Messages, language: string}} ViewContext */

export class TurnElement {
  /** @type {RoundElement[]} */
  #rounds = [];
  #body = h("div", { class: "rounds" });
  #status = h("div", { class: "status", hidden: true });
  #footer = h("div", { class: "turn-footer" });
  #shownEnd = "";

  /**
   * @param {ViewContext} context
   * @param {TurnItem} item
   */
  constructor(context, item) {
    this.context = context;
    this.element = h("article", { class: "turn", "aria-label": context.words.assistant });
    this.element.append(this.#body, this.#status, this.#footer);
    this.update(item);
  }

  /** @param {TurnItem} item */
  update(item) {
    const { rounds } = item.view;
    const isOver = Boolean(item.view.end || item.isLost);
    while (this.#rounds.length > rounds.length) this.#rounds.pop()?.element.remove();
    rounds.forEach((round, index) => {
      if (!this.#rounds[index]) {
        this.#rounds[index] = new RoundElement(this.context, Boolean(item.view.undoes));
        this.#body.append(this.#rounds[index].element);
      }
      const isNewest = !isOver && index === rounds.length - 1;
      this.#rounds[index].update(round, { isNewest, isOver });
    });
    this.#showStatus(item);
    this.#showEnd(item);
  }

  /** @param {TurnItem} item */
  #showStatus(item) {
    const { words, language } = this.context;
    const { view } = item;
    const isRunning = !view.end && !item.isStored && !item.isLost;
    this.#status.hidden = !isRunning;
    this.element.classList.toggle("running", isRunning);
    if (!isRunning) return;
    if (view.held) setText(this.#status, words.held(formatTime(view.held.until, language)));
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
    this.#footer.replaceChildren(
      ...view.warnings.map((warning) => h("p", { class: "note warn" }, icon("warn"), warning)),
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
    const { message, canRetry } = describeTurnError(end);
    const retry = h("button", { type: "button", class: "quiet", onclick: () => session.retry(item) }, words.retry);
    return [h("div", { class: "note bad", role: "alert" }, icon("warn"), h("span", {}, message), canRetry && retry)];
  }

  /** @param {{undone: string[], skipped: {reason: string}[]}} report */
  #describeReport({ undone, skipped }) {
    const { words } = this.context;
    const box = h(
      "div",
      { class: "note" },
      h("p", {}, undone.length ? words.undone(undone.length) : words.undoneNothing),
    );
    if (skipped.length) {
      const reasons = [...new Set(skipped.map((edit) => edit.reason))];
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

class RoundElement {
  #text = h("div", { class: "prose" });
  #markdown = new MarkdownView(this.#text);
  #calls = h("ul", { class: "calls" });
  /** @type {Map<string, CallElement>} */
  #callElements = new Map();
  /** @type {HTMLDetailsElement | undefined} */
  #reasoning;
  #reasoningText = document.createTextNode("");
  #reasoningLabel = h("span");
  /** @type {RoundView | undefined} */
  #shown;
  #shownWhen = "";

  /** @param {ViewContext} context @param {boolean} isUndo */
  constructor(context, isUndo) {
    this.context = context;
    this.isUndo = isUndo;
    this.element = h("div", { class: "round" }, this.#text, this.#calls);
  }

  /**
   * A round that has not changed is the same object, so that a turn of many rounds costs as much as its newest one.
   *
   * @param {RoundView} round
   * @param {{isNewest: boolean, isOver: boolean}} when
   */
  update(round, { isNewest, isOver }) {
    const when = `${isNewest} ${isOver}`;
    if (round === this.#shown && when === this.#shownWhen) return;
    this.#shown = round;
    this.#shownWhen = when;
    if (round.reasoning) this.#showReasoning(round, isNewest);
    this.#markdown.update(round.text);
    this.#text.hidden = !round.text;
    this.#calls.hidden = !round.calls.length;
    for (const call of round.calls) {
      let shown = this.#callElements.get(call.id);
      if (!shown) {
        shown = new CallElement(this.context, call);
        this.#callElements.set(call.id, shown);
        this.#calls.append(shown.element);
      }
      shown.update(call, isOver);
    }
  }

  /** @param {RoundView} round @param {boolean} isNewest */
  #showReasoning(round, isNewest) {
    const { words } = this.context;
    if (!this.#reasoning) {
      const summary = h("summary", {}, icon("chevron"), this.#reasoningLabel);
      const body = h("div", { class: "thoughts" });
      body.append(this.#reasoningText);
      this.#reasoning = h("details", { class: "reasoning" }, summary, body);
      this.element.prepend(this.#reasoning);
    }
    setText(this.#reasoningLabel, isNewest && !round.text && !round.calls.length ? words.thinking : words.thought);
    const added = round.reasoning.slice(this.#reasoningText.length);
    if (added) this.#reasoningText.appendData(added);
  }
}

/** What a call was given; only the beginning of what is too long to show. @param {any} input */
function inputWords(input) {
  const words = JSON.stringify(input, null, 2) ?? "";
  return words.length > MAX_INPUT ? `${words.slice(0, MAX_INPUT)} …` : words;
}

class CallElement {
  #state = h("span", { class: "call-state" });
  #error = h("p", { class: "call-error", hidden: true });
  #shown = "";

  /** @param {ViewContext} context @param {CallView} call */
  constructor(context, call) {
    this.context = context;
    const input = h("pre", { tabIndex: 0 });
    const details = h(
      "details",
      {},
      h(
        "summary",
        {},
        this.#state,
        h("span", { class: "call-name", dir: "auto" }, describeCall(call.name, call.input, context.words.calls)),
      ),
    );
    details.append(h("div", { class: "call-input" }, h("code", {}, call.name), input), this.#error);
    details.addEventListener("toggle", () => setText(input, inputWords(call.input)), { once: true });
    this.element = h("li", { class: "call" }, details);
  }

  /** @param {CallView} call @param {boolean} isOver The turn has ended, so that nothing is pending. */
  update(call, isOver) {
    const state = isOver && call.state === "pending" ? "open" : call.state;
    const key = `${state} ${call.isConflict} ${call.error}`;
    if (key === this.#shown) return;
    this.#shown = key;
    const { words } = this.context;
    const label = {
      pending: words.callPending,
      open: words.callOpen,
      ok: words.callOk,
      failed: call.isConflict ? words.callConflict : words.callFailed,
    };
    this.element.dataset.state = state;
    const sign = { ok: () => icon("check"), failed: () => icon("warn"), open: () => icon("close") };
    const shown = state === "pending" ? h("span", { class: "dot" }) : sign[state]();
    this.#state.replaceChildren(shown, h("span", { class: "hidden-words" }, label[state]));
    this.#error.hidden = !call.error;
    setText(this.#error, call.error ?? "");
  }
}
