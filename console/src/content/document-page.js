/** A document: what it says in each language, and its versions. */

import { announce, askInDialog, h, lockWhile, problemView, showLoaded } from "../dom.js";
import { words } from "../words/index.js";
import { DocumentForm } from "./document-form.js";
import { showVersions } from "./document-versions.js";
import { drawDocumentId, findSingleId, NEW_DOCUMENT } from "./new-document.js";
import { makeReadOnly } from "./read-only-form.js";
import { refreshRegularly } from "./refresh.js";
import { ReviewStore } from "./review-store.js";
import { closedPartView } from "./space-rights.js";

/** @import { SpaceView } from "./space-page.js" */

const BLANK = { title: "", slug: "", status: "draft", version: 0, locales: {} };

/**
 * @param {HTMLElement} target
 * @param {SpaceView} view
 * @param {string} model
 * @param {string} id
 * @param {string} [locale] The language that is unfolded; without one, the first.
 */
export function showDocument(target, view, model, id, locale) {
  target.append(h("a", { class: "back", href: view.linkTo("documents", model) }, words.content.documents.back));
  if (id === NEW_DOCUMENT && !view.may.has("write")) {
    target.append(closedPartView("write"));
    return;
  }
  const page = new DocumentPage(view, model, id, locale);
  target.append(page.element);
  refreshRegularly(view.context, () => page.refresh());
  return page.load();
}

class DocumentPage {
  /** @type {DocumentForm | undefined} */
  #form;
  /** @type {any[]} */
  #models = [];
  #isDeleted = false;
  #review;
  /** Whether the form shows the document as it is in a change set. */
  #isInReview = false;

  /** @param {SpaceView} view @param {string} model @param {string} id @param {string} [locale] */
  constructor(view, model, id, locale) {
    this.view = view;
    this.model = model;
    this.id = id;
    this.locale = locale;
    this.#review = new ReviewStore(view.content, model);
    this.body = h("div");
    this.versions = h("section");
    this.element = h("div", {}, this.body, this.versions);
  }

  /** @param {DocumentForm} [untouched] Stays if somebody begins to change it while the newest is loaded. */
  async load(untouched) {
    const options = { signal: this.view.context.signal };
    await showLoaded(
      this.body,
      () => Promise.all([this.#readModels(options), this.#read()]),
      ([models, document]) => (untouched?.isChanged() ? this.#tell(untouched) : this.#showStored(models, document)),
    );
    if (!this.#isNew) await this.#loadVersions();
  }

  /** Read the model; of a page, all models: its sections are some of them. @param {{signal: AbortSignal}} options */
  async #readModels(options) {
    const { models } = this.view.content;
    try {
      const model = await models.get(this.model, options);
      return model.kind === "page" ? await models.list(options) : [model];
    } catch (error) {
      if (/** @type {any} */ (error).status !== 404) throw error;
      return []; // it was deleted
    }
  }

  get #isNew() {
    return this.id === NEW_DOCUMENT;
  }

  /** @returns {Promise<any>} The document; undefined if it was deleted. */
  async #read() {
    if (this.#isNew) return { ...BLANK, id: drawDocumentId() }; // with which the ids of a page's sections begin
    const { content, context } = this.view;
    try {
      return await content.documents.get(this.model, this.id, { signal: context.signal });
    } catch (error) {
      if (/** @type {any} */ (error).status !== 404) throw error;
      const { versions } = await content.documents.versions(
        this.model,
        this.id,
        { limit: 1 },
        { signal: context.signal },
      );
      if (!versions.length) throw error;
      return undefined;
    }
  }

  #loadVersions() {
    return showVersions(this.versions, this.view, this.model, this.id, () => this.load());
  }

  /** Show what others have changed, unless something is changed here, or shown as it is in a change set. */
  async refresh() {
    const form = this.#form;
    if (this.#isNew || this.#isInReview || (!form && !this.#isDeleted)) return;
    const document = await this.#read().catch(() => undefined);
    if (!document || form !== this.#form || document.version === form?.document.version) return;
    if (form?.element.hasAttribute("aria-busy")) return; // what is stored is shown, or what stands against it
    if (form?.isChanged()) this.#tell(form);
    else await this.load(form);
  }

  /** @param {DocumentForm} form */
  #tell(form) {
    const open = () => {
      location.hash = this.view.linkTo("documents", this.model, form.document.id);
    };
    form.tellChangedMeanwhile(this.#isNew ? open : () => this.load());
  }

  /** @param {any[]} models @param {any} document */
  #showStored(models, document) {
    this.#models = models;
    this.#review = new ReviewStore(this.view.content, this.model);
    this.#isInReview = false;
    this.#isDeleted = document === undefined;
    if (!this.#isDeleted) return this.#show(document);
    this.#form = undefined;
    return h("p", { class: "problem", role: "status" }, words.content.document.deleted);
  }

  /** @param {any} document */
  #show(document) {
    const models = this.#models;
    const model = models.find(({ id }) => id === this.model) ?? { id: this.model, kind: "collection", fields: {} };
    const form = new DocumentForm(document, model, models, this.view.locales, this.locale);
    this.#form = form;
    const mayWrite = this.view.may.has("write");
    const onclick = () => this.#remove(document);
    const remove = mayWrite && !this.#isNew && h("button", { type: "button", class: "button", onclick }, words.remove);
    if (!mayWrite) makeReadOnly(form.element);
    form.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save(form);
    });
    const head = h(
      "header",
      { class: "page-head" },
      h("h2", { class: "document-title" }, h("bdi", {}, document.title || this.id)),
      remove,
    );
    return [head, form.element];
  }

  /** @param {DocumentForm} form */
  async #save(form) {
    const wasInReview = this.#isInReview;
    try {
      const change = form.readChange();
      if ((!this.#isNew || wasInReview) && !Object.keys(change).length) {
        announce(words.content.document.unchanged);
        return;
      }
      if (!(await lockWhile(form.element, () => this.#store(form, change)))) return;
      announce(this.#isInReview ? words.content.review.stored : words.content.document.saved);
    } catch (error) {
      const { status, details } = /** @type {any} */ (error);
      const isMeanwhile = status === 412 || (wasInReview && status === 409); // its change set was merged or discarded
      if (isMeanwhile) this.#tell(form);
      else form.tell(problemView(error), details?.problems);
    }
  }

  /** @param {DocumentForm} form @param {any} change */
  async #store(form, change) {
    if (this.#isInReview) return this.#storeForReview(form, change);
    const { content, linkTo } = this.view;
    const { id, version } = form.document;
    try {
      if (this.#isNew) {
        const own = findSingleId(form.model) ?? (change.locales?.data?.sections && id);
        const { document } = await content.documents.create(this.model, own ? { ...change, id: own } : change);
        location.hash = linkTo("documents", this.model, document.id);
        return;
      }
      await content.documents.update(this.model, this.id, change, { ifVersion: version });
    } catch (error) {
      if (/** @type {any} */ (error).code !== "reviewRequired") throw error;
      return this.#storeForReview(form, change);
    }
    await this.load();
  }

  /** Store a change in a change set, and show the document as it is there. @param {DocumentForm} form @param {any} change */
  async #storeForReview({ document, model }, change) {
    const id = this.#isNew ? (findSingleId(model) ?? document.id) : this.id;
    const name = this.#nameOf(change.title ?? document.title, model);
    const stored = await this.#review.store(id, change, name);
    this.#isInReview = true;
    const shown = { ...stored.document, version: document.version };
    await showLoaded(
      this.body,
      async () => shown,
      () => this.#show(shown),
    );
    this.#form?.tell(this.#reviewNote(stored.changeSet));
  }

  /** @param {string} title @param {any} model */
  #nameOf(title, model) {
    return title || (this.#isNew ? model.title || model.id : this.id);
  }

  /** @param {any} changeSet */
  #reviewNote({ id, title }) {
    const link = h("a", { href: this.view.linkTo("change-sets", id) }, title || words.content.changeSets.untitled);
    return h("p", { class: "quiet-text" }, words.content.review.storedText, " ", link);
  }

  /** @param {any} document */
  async #remove({ title, version }) {
    const { removeTitle, removeText, removed } = words.content.document;
    const done = await askInDialog(removeTitle(title || this.id), [h("p", {}, removeText)], {
      action: words.remove,
      isDangerous: true,
      onAction: () => this.view.content.documents.remove(this.model, this.id, { ifVersion: version }),
    });
    if (!done) return;
    announce(removed);
    await this.load();
  }
}
