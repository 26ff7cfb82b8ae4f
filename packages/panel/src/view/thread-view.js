/** The thread: prompts, turns, and where it is scrolled to. */

/** @import { ThreadImage, ThreadItem, TurnItem, UserItem } from "../state/thread.js" */
/** @import { ViewContext } from "./turn-element.js" */
/** @import { Messages } from "../messages.js" */
import { isAwaitingDecision } from "../state/turn-view.js";
import { describeCall } from "./call-description.js";
import { h, setText, showBlob } from "./dom.js";
import { TurnElement } from "./turn-element.js";

const NEAR_END = 48;
const AT_END = 2;

export class ThreadView {
  /** @type {Map<string, {element: HTMLElement, turn?: TurnElement}>} */
  #shown = new Map();
  #list = h("div", { class: "thread-items" });
  #spoken = h("p", { class: "hidden-words", role: "status" });
  #older;
  #isFollowing = true;
  /** @type {Set<TurnItem>} */
  #changed = new Set();
  #frame = 0;
  #lastTop = 0;
  #firstKey = "";
  /** Images that arrive and windows that shrink leave the end in sight. */
  #sizes = new ResizeObserver(() => this.#isFollowing && this.scrollToEnd());

  /** @param {ViewContext} context */
  constructor(context) {
    this.context = context;
    this.#older = h(
      "button",
      { type: "button", class: "quiet older", hidden: true, onclick: () => context.session.loadOlder() },
      context.words.older,
    );
    this.empty = h(
      "div",
      { class: "empty" },
      h("h2", {}, context.words.emptyTitle),
      h("p", {}, context.words.emptyText),
    );
    this.element = h("div", {
      class: "thread",
      tabIndex: 0,
      role: "log",
      "aria-live": "off",
      "aria-label": context.words.panel,
    });
    this.element.append(this.#older, this.empty, this.#list, this.#spoken);
    this.element.addEventListener("scroll", () => {
      const { scrollHeight, scrollTop, clientHeight } = this.element;
      // Whoever scrolls back while text streams is not pulled to the end, however little it was.
      const nearness = scrollTop < this.#lastTop ? AT_END : NEAR_END;
      this.#isFollowing = scrollHeight - scrollTop - clientHeight < nearness;
      this.#lastTop = scrollTop;
    });
    this.#sizes.observe(this.element);
    this.#sizes.observe(this.#list);
  }

  update() {
    const { state } = this.context.session;
    this.#older.hidden = !state.olderCursor;
    this.empty.hidden = state.items.length > 0 || state.isLoading;
    this.element.classList.toggle("loading", state.isLoading && state.items.length === 0);
    const keys = new Set(state.items.map((item) => item.key));
    for (const [key, { element }] of this.#shown) {
      if (keys.has(key)) continue;
      element.remove();
      this.#shown.delete(key);
    }
    const firstKey = state.items[0]?.key ?? "";
    const hasOlder = firstKey !== this.#firstKey && keys.has(this.#firstKey);
    this.#firstKey = firstKey;
    const height = this.element.scrollHeight;
    let next = this.#list.firstElementChild;
    for (const item of state.items) {
      const { element } = this.#elementOf(item);
      if (element !== next) this.#list.insertBefore(element, next);
      else next = next.nextElementSibling;
    }
    for (const item of state.items) if (item.kind === "turn") this.#shown.get(item.key)?.turn?.update(item);
    if (this.#isFollowing) this.scrollToEnd();
    else if (hasOlder && this.element.scrollTop < NEAR_END)
      this.element.scrollTop += this.element.scrollHeight - height;
  }

  /**
   * Show what a turn's event has changed, with the next frame: many events may come within one.
   *
   * @param {TurnItem} item
   */
  changeTurn(item) {
    this.#changed.add(item);
    this.#frame ||= requestAnimationFrame(() => this.#showChanged());
  }

  close() {
    this.#sizes.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  scrollToEnd() {
    this.element.scrollTop = this.element.scrollHeight;
    this.#isFollowing = true;
  }

  #showChanged() {
    this.#frame = 0;
    for (const item of this.#changed) {
      this.#shown.get(item.key)?.turn?.update(item);
      setText(this.#spoken, spokenOf(item, this.context.words)); // emptied, it is spoken again next time
    }
    this.#changed.clear();
    if (this.#isFollowing) this.scrollToEnd();
  }

  /** @param {ThreadItem} item */
  #elementOf(item) {
    let shown = this.#shown.get(item.key);
    if (!shown) {
      if (item.kind === "user") shown = { element: this.#userElement(item) };
      else {
        const turn = new TurnElement(this.context, item);
        shown = { element: turn.element, turn };
      }
      this.#shown.set(item.key, shown);
    }
    return shown;
  }

  /** @param {UserItem} item */
  #userElement(item) {
    const { words } = this.context;
    const images = item.images.map((image) => this.#imageElement(image));
    return h("article", { class: "user", "aria-label": words.you }, ...images, item.text && h("p", {}, item.text));
  }

  /** @param {ThreadImage} image */
  #imageElement(image) {
    const element = h("img", { alt: this.context.words.imageFromPrompt, class: "attached" });
    this.#loadImage(element, image);
    return element;
  }

  /** @param {HTMLImageElement} element @param {ThreadImage} image */
  async #loadImage(element, image) {
    try {
      const blob = image.blob ?? (image.url ? await this.context.session.fetchImage(image.url) : undefined);
      if (!blob) return;
      await showBlob(element, blob);
    } catch {
      element.replaceWith(h("p", { class: "note" }, this.context.words.imageFromPrompt));
    }
  }
}

/** What a screen reader says about a turn: that it is over, or that it waits for a person. @param {TurnItem} item @param {Messages} words */
function spokenOf({ view }, words) {
  if (view.end) return view.end.type === "done" ? words.answerReady : "";
  const waiting = view.rounds.at(-1)?.calls.find(isAwaitingDecision);
  return waiting ? words.approval.spoken(describeCall(waiting.name, waiting.input, words.calls)) : "";
}
