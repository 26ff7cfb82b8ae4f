/** A change set: what it would change, page by page, and how it is merged or discarded. */

import { announce, askInDialog, field, h, showLoaded } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { stateTag } from "./change-sets.js";
import { changedDocumentView } from "./changed-document.js";
import { ListPages } from "./list-pages.js";
import { mergeProblem } from "./merge-problem.js";
import { refreshRegularly } from "./refresh.js";
import { RelationTitles } from "./relation-titles.js";
import { note } from "./space-rights.js";

/** @import { SpaceView } from "./space-page.js" */
/** @import { MergeDecision } from "./merge-problem.js" */

const PAGE_SIZE = 20;
const META_MODEL = "model";

/** @param {HTMLElement} target @param {SpaceView} view @param {string} id */
export function showChangeSet(target, view, id) {
  const page = new ChangeSetPage(view, id);
  target.append(
    h("a", { class: "back", href: view.linkTo("change-sets") }, words.content.changeSets.back),
    page.element,
  );
  refreshRegularly(view.context, () => page.refresh());
  return page.load();
}

class ChangeSetPage {
  /** The only model whose documents are shown. */
  #model = "";
  #pages;
  /** How many documents there are of each model, if they do not fit on one page. @type {Record<string, number>} */
  #counts = {};
  #shown = "";
  /** Definitions by the ids of models. @type {Map<string, Promise<any>>} */
  #models = new Map();

  /** @param {SpaceView} view @param {string} id */
  constructor(view, id) {
    this.view = view;
    this.id = id;
    this.element = h("div");
    this.#pages = new ListPages(
      (wanted) => this.#read({ ...wanted, ...(this.#model && { model: this.#model }) }),
      ({ documents }) => documents.length,
      PAGE_SIZE,
    );
  }

  /** @param {{isRefresh?: boolean}} [options] */
  load(options) {
    const titles = new RelationTitles(this.view);
    const read = async () => {
      const page = await this.#pages.read();
      return { page, models: await this.#readModels(page.documents) };
    };
    const shown = showLoaded(this.element, read, ({ page, models }) => this.#render(page, models, titles), options);
    return shown.then(() => titles.load());
  }

  /** Show it anew if it has changed: what a person is reading stays as it is otherwise. */
  async refresh() {
    if (!this.#shown) return;
    const read = await this.#read({ limit: 0 }).catch(() => undefined);
    if (read && stateOf(read.changeSet) !== this.#shown) await this.load({ isRefresh: true });
  }

  /** @param {{limit: number, cursor?: string, model?: string}} wanted */
  #read(wanted) {
    const { content, context } = this.view;
    return content.changeSets.page(this.id, wanted, { signal: context.signal });
  }

  /** Read the models of documents once. @param {any[]} documents @returns {Promise<Map<string, any>>} */
  async #readModels(documents) {
    const { content, context } = this.view;
    const read = (/** @type {string} */ id) =>
      content.models.get(id, { signal: context.signal }).catch((error) => {
        if (error.status === 404) return undefined; // it is new in the change set
        this.#models.delete(id);
        throw error;
      });
    const ids = [...new Set(documents.map(({ model }) => model))].filter((id) => id !== META_MODEL);
    for (const id of ids) if (!this.#models.has(id)) this.#models.set(id, read(id));
    return new Map(await Promise.all(ids.map(async (id) => /** @type {const} */ ([id, await this.#models.get(id)]))));
  }

  /** @param {any} page @param {Map<string, any>} models @param {RelationTitles} titles */
  #render(page, models, titles) {
    const { untitled, contents, by } = words.content.changeSets;
    const { changeSet, documents, may } = page;
    const { status, title, branch, user, createdAt } = changeSet;
    this.#shown = stateOf(changeSet);
    if (page.documentsByModel && !this.#model) this.#counts = page.documentsByModel;
    const problem = h("div", { class: "form-problem-place" });
    const name = h("h2", { class: "document-title" }, h("bdi", {}, title || untitled));
    const parts = documents.map((/** @type {any} */ document) =>
      changedDocumentView(document, models.get(document.model), this.view, titles),
    );
    const nothing = contents[/** @type {keyof typeof contents} */ (status)] ?? "";
    const total = this.#model ? this.#counts[this.#model] : changeSet.documents;
    return [
      h("header", { class: "page-head" }, h("div", { class: "tags" }, name, stateTag(status))),
      h(
        "p",
        { class: "quiet-text" },
        by(user, formatInstant(createdAt)),
        branch && branch !== title ? ` ${branch}` : "",
      ),
      this.#modelChoice(changeSet.documents),
      ...(parts.length ? parts : [h("p", { class: "quiet-text" }, nothing)]),
      this.#pages.buttons(page, () => this.#turn(), total),
      problem,
      ...(status === "open" ? this.#actions(may, problem) : []),
    ];
  }

  async #turn() {
    await this.load();
    this.element.scrollIntoView({ block: "start" });
  }

  /** The choice of a model, where there are many documents. @param {number} total */
  #modelChoice(total) {
    const names = Object.entries(this.#counts);
    if (names.length < 2) return null;
    const { allModels } = words.content.changeSets;
    const option = (/** @type {string} */ value, /** @type {string} */ text, /** @type {number} */ count) =>
      h("option", { value }, `${text} (${formatCount(count)})`);
    const choice = h("select", {}, option("", allModels, total), ...names.map(([id, count]) => option(id, id, count)));
    choice.value = this.#model;
    choice.addEventListener("change", () => {
      this.#model = choice.value;
      this.#pages.reset();
      this.load();
    });
    return h("div", { class: "content-tools" }, field(words.content.model, choice));
  }

  /** @param {string[]} may @param {HTMLElement} problem */
  #actions(may, problem) {
    const { merge, mergeByReviewers, discard } = words.content.changeSets;
    const button = h("button", { type: "button", class: "button primary" }, merge);
    button.addEventListener("click", () => this.#merge({}, button, problem));
    const discarding = h("button", { type: "button", class: "button", onclick: () => this.#discard() }, discard);
    const buttons = [may.includes("discard") && discarding, may.includes("merge") && button].filter(Boolean);
    return [
      !may.includes("merge") && note(mergeByReviewers),
      buttons.length > 0 && h("div", { class: "form-end" }, ...buttons),
    ];
  }

  /** @param {MergeDecision} decision @param {HTMLButtonElement} button @param {HTMLElement} problem */
  async #merge(decision, button, problem) {
    button.disabled = true;
    try {
      await this.view.content.changeSets.merge(this.id, decision);
      announce(words.content.changeSets.merged);
      this.#pages.reset();
      await this.load();
    } catch (error) {
      const mergeSo = (/** @type {MergeDecision} */ more) => this.#merge({ ...decision, ...more }, button, problem);
      problem.replaceChildren(mergeProblem(/** @type {any} */ (error), this.view, mergeSo, () => this.load()));
      problem.scrollIntoView({ block: "nearest" });
    } finally {
      button.disabled = false;
    }
  }

  async #discard() {
    const { discard, discardTitle, discardText, discarded } = words.content.changeSets;
    const onAction = () => this.view.content.changeSets.discard(this.id);
    if (!(await askInDialog(discardTitle, [h("p", {}, discardText)], { action: discard, isDangerous: true, onAction })))
      return;
    announce(discarded);
    location.hash = this.view.linkTo("change-sets");
  }
}

/** @param {any} changeSet */
const stateOf = ({ status, version }) => `${status} ${version}`;
