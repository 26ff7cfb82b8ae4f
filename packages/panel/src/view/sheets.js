/** The sheets that open over the thread: conversations and models. */

/** @import { Problem } from "../state/session-state.js" */
/** @import { ViewContext } from "./turn-element.js" */
import { describeError } from "../state/problems.js";
import { h, icon, iconButton } from "./dom.js";
import { formatCost, formatCount, formatDay } from "./format.js";
import { problemWords } from "./problem-wording.js";

/** A sheet has a title, a search field and a list; Escape and its button close it, and focus goes back. */
class Sheet {
  /** @type {Element | null} */
  #opener = null;

  /**
   * @param {ViewContext} context
   * @param {string} title
   * @param {string} searchLabel
   */
  constructor(context, title, searchLabel) {
    this.context = context;
    this.search = h("input", { type: "search", placeholder: searchLabel, "aria-label": searchLabel });
    this.list = h("div", { class: "sheet-list" });
    const head = h(
      "div",
      { class: "sheet-head" },
      iconButton("back", context.words.back, () => this.close()),
      h("h2", {}, title),
    );
    this.element = h(
      "div",
      { class: "sheet", role: "dialog", "aria-label": title, hidden: true },
      head,
      this.search,
      this.list,
    );
    this.search.addEventListener("input", () => this.show());
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close();
    });
  }

  async open() {
    const root = /** @type {ShadowRoot} */ (this.element.getRootNode());
    this.#opener = root.activeElement;
    this.element.hidden = false;
    this.#cover(true);
    this.search.value = "";
    this.search.focus();
    this.list.replaceChildren(...skeleton());
    try {
      await this.fetch();
      this.show();
    } catch (error) {
      this.list.replaceChildren();
      this.tell(error);
    }
  }

  /** Say what went wrong, above what is listed. @param {unknown} error */
  tell(error) {
    const words = problemWords(describeError(error), this.context.words);
    this.list.prepend(h("div", { class: "note bad", role: "alert" }, h("div", {}, ...words)));
  }

  close() {
    this.element.hidden = true;
    this.#cover(false);
    if (this.#opener instanceof HTMLElement) this.#opener.focus();
  }

  /** Nobody reaches by the keyboard what the sheet covers. @param {boolean} isCovered */
  #cover(isCovered) {
    for (const other of this.element.parentElement?.children ?? [])
      if (other instanceof HTMLElement && other !== this.element) other.inert = isCovered;
  }

  /** Get what is listed. @returns {Promise<void>} */
  async fetch() {}

  /** Show what is listed and matches the search. */
  show() {}

  /** @param {string} text */
  matches(text) {
    const wanted = this.search.value.trim().toLowerCase();
    return wanted.split(/\s+/).every((word) => text.toLowerCase().includes(word));
  }
}

/** The conversations of the scope. */
export class HistorySheet extends Sheet {
  /** @type {Record<string, any>[]} */
  #conversations = [];
  /** @type {string | undefined} */
  #cursor;

  /** @param {ViewContext} context */
  constructor(context) {
    super(context, context.words.history, context.words.searchHistory);
  }

  async fetch() {
    const page = await this.context.session.listConversations();
    this.#conversations = page.conversations;
    this.#cursor = page.nextCursor;
  }

  show() {
    const { words } = this.context;
    const found = this.#conversations.filter(({ title }) => this.matches(title || words.untitled));
    const rows = h("ul", {}, ...found.map((conversation) => this.#row(conversation)));
    const empty = this.#conversations.length ? words.noMatches : words.noConversations;
    this.list.replaceChildren(found.length ? rows : h("p", { class: "empty-list" }, empty));
    if (this.#cursor)
      this.list.append(h("button", { type: "button", class: "quiet", onclick: () => this.#more() }, words.more));
  }

  async #more() {
    const cursor = this.#cursor;
    if (!cursor) return; // it was pressed twice
    this.#cursor = undefined;
    try {
      const page = await this.context.session.listConversations({ cursor });
      this.#conversations = [...this.#conversations, ...page.conversations];
      this.#cursor = page.nextCursor;
      this.show();
      this.search.focus();
    } catch (error) {
      this.#cursor = cursor;
      this.tell(error);
    }
  }

  /** @param {Record<string, any>} conversation */
  #row(conversation) {
    const { words, language, session } = this.context;
    const open = () => {
      this.close();
      session.openConversation(conversation.id).catch(() => {}); // the session's state says what went wrong
    };
    const title = conversation.title || words.untitled;
    const isOpen = session.state.conversation?.id === conversation.id;
    return h(
      "li",
      { class: "row" },
      h(
        "button",
        { type: "button", class: "row-main", onclick: open, "aria-current": isOpen ? "true" : undefined },
        h("span", { class: "row-title", dir: "auto" }, title),
        h("span", { class: "row-detail" }, formatDay(conversation.updatedAt, language)),
      ),
      iconButton("trash", `${words.remove}: ${title}`, () => this.#remove(conversation, title)),
    );
  }

  /** @param {Record<string, any>} conversation @param {string} title */
  async #remove(conversation, title) {
    if (!window.confirm(`${this.context.words.removeSure}\n${title}`)) return;
    try {
      await this.context.session.removeConversation(conversation.id);
    } catch (error) {
      if (/** @type {any} */ (error).status !== 404) return this.tell(error); // otherwise somebody else has deleted it
    }
    this.#conversations = this.#conversations.filter((each) => each !== conversation);
    this.show();
    this.search.focus();
  }
}

/** The models of all credentials. */
export class ModelSheet extends Sheet {
  /** @type {{credential: Record<string, any>, models: Record<string, any>[], problem?: Problem}[]} */
  #groups = [];

  /** @param {ViewContext} context */
  constructor(context) {
    super(context, context.words.chooseModel, context.words.searchModels);
    this.element.classList.add("models");
  }

  async fetch() {
    this.#groups = await this.context.session.listModels();
  }

  show() {
    const { words } = this.context;
    const groups = this.#groups.map(({ credential, models, problem }) => {
      const found = models.filter((model) => this.matches(`${model.label} ${model.id} ${credential.displayLabel}`));
      if (!found.length && (this.search.value || models.length)) return null;
      const empty = problem
        ? h("div", { class: "note bad" }, h("div", {}, ...problemWords(problem, words)))
        : h("p", { class: "empty-list" }, words.noModels);
      const rows = h("ul", {}, ...found.slice(0, 200).map((model) => this.#row(credential, model)));
      return h("section", {}, h("h3", {}, credential.displayLabel), found.length ? rows : empty);
    });
    const shown = groups.filter((group) => group !== null);
    this.list.replaceChildren(...(shown.length ? shown : [h("p", { class: "empty-list" }, words.noMatches)]));
  }

  /** @param {Record<string, any>} credential @param {Record<string, any>} model */
  #row(credential, model) {
    const { session } = this.context;
    const chosen = session.state.model;
    const isChosen = chosen?.credentialId === credential.id && chosen?.modelId === model.id;
    const choose = () => {
      session.chooseModel({ credentialId: credential.id, modelId: model.id }, model);
      this.close();
    };
    return h(
      "li",
      { class: "row" },
      h(
        "button",
        { type: "button", class: "row-main", onclick: choose, "aria-current": isChosen ? "true" : undefined },
        h("span", { class: "row-title", dir: "auto" }, model.label, isChosen && icon("check")),
        h("span", { class: "row-detail" }, this.#detail(model)),
      ),
    );
  }

  /** @param {Record<string, any>} model */
  #detail({ pricing, contextWindow }) {
    const { words, language } = this.context;
    const price =
      pricing &&
      words.perMillion(formatCost(pricing.inputPerMTok, language), formatCost(pricing.outputPerMTok, language));
    const size = contextWindow && words.contextSize(formatCount(contextWindow, language));
    return [price, size].filter(Boolean).join(" · ");
  }
}

function skeleton() {
  return Array.from({ length: 5 }, () => h("div", { class: "skeleton", "aria-hidden": "true" }));
}
