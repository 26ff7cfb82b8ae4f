/** A document: what it says in each language, and its versions. */

import { announce, askInDialog, h, lockWhile, problemView, showLoaded } from "../dom.js";
import { words } from "../words/index.js";
import { DocumentForm } from "./document-form.js";
import { showVersions } from "./document-versions.js";
import { NEW_DOCUMENT } from "./new-document.js";
import { makeReadOnly } from "./read-only-form.js";
import { refreshRegularly } from "./refresh.js";
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
  #isDeleted = false;

  /** @param {SpaceView} view @param {string} model @param {string} id @param {string} [locale] */
  constructor(view, model, id, locale) {
    this.view = view;
    this.model = model;
    this.id = id;
    this.locale = locale;
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
      ([models, document]) => (untouched?.isChanged() ? this.#tell(untouched) : this.#show(models, document)),
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
    if (this.#isNew) return { ...BLANK, id: crypto.randomUUID() }; // with which the ids of a page's sections begin
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

  /** Show what others have changed, unless something is changed here. */
  async refresh() {
    const form = this.#form;
    if (this.#isNew || (!form && !this.#isDeleted)) return;
    const document = await this.#read().catch(() => undefined);
    if (!document || form !== this.#form || document.version === form?.document.version) return;
    if (form?.element.hasAttribute("aria-busy")) return; // what is stored is shown, or what stands against it
    if (form?.isChanged()) this.#tell(form);
    else await this.load(form);
  }

  /** @param {DocumentForm} form */
  #tell(form) {
    form.tellChangedMeanwhile(() => this.load());
  }

  /** @param {any[]} models @param {any} document */
  #show(models, document) {
    this.#isDeleted = document === undefined;
    if (this.#isDeleted) {
      this.#form = undefined;
      return h("p", { class: "problem", role: "status" }, words.content.document.deleted);
    }
    const model = models.find(({ id }) => id === this.model) ?? { id: this.model, kind: "collection", fields: {} };
    const form = new DocumentForm(document, model, models, this.view.locales, this.locale);
    this.#form = form;
    const mayWrite = this.view.may.has("write");
    const onclick = () => this.#remove(document);
    const remove = mayWrite && h("button", { type: "button", class: "button", onclick }, words.remove);
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
    try {
      const change = form.readChange();
      if (!this.#isNew && !Object.keys(change).length) {
        announce(words.content.document.unchanged);
        return;
      }
      const store = () => this.#store(form.document, change);
      if (await lockWhile(form.element, store)) announce(words.content.document.saved);
    } catch (error) {
      if (/** @type {any} */ (error).status === 412) this.#tell(form);
      else form.tell(problemView(error), /** @type {any} */ (error).details?.problems);
    }
  }

  /** @param {any} document @param {any} change */
  async #store({ id, version }, change) {
    const { content, linkTo } = this.view;
    if (this.#isNew) {
      const named = change.locales?.data?.sections ? { ...change, id } : change;
      const { document } = await content.documents.create(this.model, named);
      location.hash = linkTo("documents", this.model, document.id);
      return;
    }
    await content.documents.update(this.model, this.id, change, { ifVersion: version });
    await this.load();
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
