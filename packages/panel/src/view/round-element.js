/** One response of the model as it is shown: reasoning, text and tool calls. */

/** @import { CallView, RoundView } from "../state/turn-view.js" */
/** @import { ViewContext } from "./turn-element.js" */
import { isAwaitingDecision } from "../state/turn-view.js";
import { CallElement } from "./call-element.js";
import { h, icon, keepFocus, setText } from "./dom.js";
import { NewestWindow } from "./list-window.js";
import { MarkdownView } from "./markdown.js";

const MIN_CALLS = 12;

export class RoundElement {
  #text = h("div", { class: "prose" });
  #markdown = new MarkdownView(this.#text);
  #calls;
  /** @type {HTMLDetailsElement | undefined} */
  #reasoning;
  #reasoningText = document.createTextNode("");
  #reasoningLabel = h("span");
  /** @type {RoundView | undefined} */
  #shown;
  #shownWhen = "";

  /** @param {ViewContext} context */
  constructor(context) {
    this.context = context;
    this.#calls = new CallsElement(context);
    this.element = h("div", { class: "round" }, this.#text, this.#calls.element);
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
    this.#showReasoning(round, isNewest);
    this.#markdown.update(round.text);
    this.#text.hidden = !round.text;
    this.#calls.update(round.calls, isOver);
  }

  /** @param {RoundView} round @param {boolean} isNewest */
  #showReasoning(round, isNewest) {
    const { words } = this.context;
    if (!this.#reasoning && !round.reasoning) return;
    this.#reasoning ??= this.#makeReasoning();
    this.#reasoning.hidden = !round.reasoning;
    setText(this.#reasoningLabel, isNewest && !round.text && !round.calls.length ? words.thinking : words.thought);
    if (!round.reasoning.startsWith(this.#reasoningText.data)) this.#reasoningText.data = "";
    const added = round.reasoning.slice(this.#reasoningText.length);
    if (added) this.#reasoningText.appendData(added);
  }

  #makeReasoning() {
    const summary = h("summary", {}, icon("chevron"), this.#reasoningLabel);
    const body = h("div", { class: "thoughts" });
    body.append(this.#reasoningText);
    const reasoning = h("details", { class: "reasoning" }, summary, body);
    this.element.prepend(reasoning);
    return reasoning;
  }
}

/** The calls of one response: the newest ones, and a row that opens the ones before. */
class CallsElement {
  #window = new NewestWindow(MIN_CALLS);
  #list = h("ul", { class: "calls" });
  #earlier;
  /** The calls that are shown, by their place. @type {Map<number, {element: CallElement, id: string}>} */
  #shown = new Map();
  /** @type {CallView[]} */
  #all = [];
  #isOver = false;

  /** @param {ViewContext} context */
  constructor(context) {
    this.context = context;
    this.#earlier = h("button", { type: "button", class: "earlier", onclick: () => this.#showOlder() });
    this.element = h("div", { class: "call-box", hidden: true }, this.#earlier, this.#list);
  }

  /** @param {CallView[]} calls @param {boolean} isOver */
  update(calls, isOver) {
    this.#all = calls;
    this.#isOver = isOver;
    this.element.hidden = !calls.length;
    const first = this.#firstShown(calls, isOver);
    this.#describeEarlier(calls, first);
    this.#removeOthers(first, calls);
    /** @type {Element | null} */
    let next = this.#list.firstElementChild;
    for (let place = first; place < calls.length; place += 1) {
      const call = calls[place];
      const element = this.#shown.get(place)?.element ?? this.#add(place, call);
      element.update(call, isOver);
      if (element.element !== next) this.#list.insertBefore(element.element, next);
      else next = next.nextElementSibling;
    }
  }

  /** Where the shown ones begin: calls that a person has to decide about are among them. @param {CallView[]} calls @param {boolean} isOver */
  #firstShown(calls, isOver) {
    const first = this.#window.firstOf(calls.length);
    const waiting = isOver ? -1 : calls.findIndex(isAwaitingDecision);
    return waiting < 0 ? first : Math.min(first, waiting);
  }

  /** @param {number} place @param {CallView} call */
  #add(place, call) {
    const element = new CallElement(this.context, call);
    this.#shown.set(place, { element, id: call.id });
    return element;
  }

  /** @param {number} first @param {CallView[]} calls */
  #removeOthers(first, calls) {
    for (const [place, { element, id }] of this.#shown) {
      if (place >= first && calls[place]?.id === id) continue;
      keepFocus(this.#list, () => element.element.remove(), this.#earlier);
      this.#shown.delete(place);
    }
  }

  /** @param {CallView[]} calls @param {number} first */
  #describeEarlier(calls, first) {
    this.#earlier.hidden = first === 0;
    if (!first) return;
    let failed = 0;
    for (let place = 0; place < first; place += 1) if (calls[place].state === "failed") failed += 1;
    setText(this.#earlier, this.context.words.earlierCalls(first, failed));
  }

  #showOlder() {
    this.#window.showOlder();
    keepFocus(this.element, () => this.update(this.#all, this.#isOver), this.element);
    if (this.#earlier.hidden) this.#list.querySelector("summary")?.focus();
  }
}
