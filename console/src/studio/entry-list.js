/** The entries of a model by language: what is written in which, and what is missing. */

import { statusTag } from "../content/document-list.js";
import { makeDocumentPages } from "../content/list-pages.js";
import { NEW_DOCUMENT } from "../content/new-document.js";
import { refreshRegularly } from "../content/refresh.js";
import { emptyView, field, h, number, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { makeEntrySearch } from "./entry-search.js";

/** @import { SpaceView } from "../content/space-page.js" */

const SHARED = "data";

/** @param {HTMLElement} target @param {SpaceView} view @param {string | undefined} model */
export function showEntries(target, view, model) {
  return showLoaded(
    target,
    () => view.content.models.list({ signal: view.context.signal }),
    (models) => {
      const own = sortModels(models);
      const chosen = own.find(({ id }) => id === model) ?? own[0];
      nameInAddress(view, "documents", chosen.id, model);
      return entriesView(view, own, chosen);
    },
  );
}

/**
 * Return the models that have entries: those of the project first.
 *
 * @param {any[]} models
 */
export function sortModels(models) {
  const own = models.filter(({ kind }) => kind !== "section");
  return [...own.filter(({ builtIn }) => !builtIn), ...own.filter(({ builtIn }) => builtIn)];
}

/**
 * Let the address name the model that is shown, so that a copied link and the assistant know it.
 *
 * @param {SpaceView} view
 * @param {string} part
 * @param {string} shown
 * @param {string | undefined} named What it names now.
 */
export function nameInAddress({ context, linkTo }, part, shown, named) {
  if (named === shown || context.signal.aborted) return;
  history.replaceState(history.state, "", linkTo(part, shown));
}

/** @param {SpaceView} view @param {any[]} models @param {any} model */
function entriesView(view, models, model) {
  const { everything, missingIn, show } = words.studio.entries;
  const list = new EntryList(view, model);
  const choice = h("select", { onchange: () => open(choice.value) }, ...models.map(modelOption));
  const open = (/** @type {string} */ id) => {
    location.hash = view.linkTo("documents", id);
  };
  choice.value = model.id;
  const missing = h("select", { onchange: () => list.filter(missing.value) }, h("option", { value: "" }, everything));
  missing.append(...view.locales.map((locale) => h("option", { value: locale }, missingIn(locale))));
  const address = view.linkTo("documents", model.id, NEW_DOCUMENT);
  const create =
    view.may.has("write") && h("a", { class: "button primary", href: address }, words.studio.entries.create);
  const filter = model.i18n && field(show, missing);
  const { form, found } = makeEntrySearch(view, list.element);
  list.load();
  refreshRegularly(view.context, () => list.load({ isRefresh: true }));
  const tools = h("div", { class: "content-tools" }, field(words.content.model, choice), filter, form, create);
  return [tools, list.element, found];
}

/** @param {any} model */
function modelOption({ id, title, documents }) {
  return h("option", { value: id }, `${title || id} (${formatCount(documents)})`);
}

class EntryList {
  /** Only entries that are missing in it are shown. */
  #missing = "";
  #pages;

  /** @param {SpaceView} view @param {any} model */
  constructor(view, model) {
    this.view = view;
    this.model = model;
    this.element = h("div");
    this.#pages = makeDocumentPages(view, model.id, () => (this.#missing ? { missing: this.#missing } : {}));
  }

  /** @param {string} missing */
  filter(missing) {
    this.#missing = missing;
    this.#pages.reset();
    this.load();
  }

  /** @param {{isRefresh?: boolean}} [options] */
  load(options) {
    return showLoaded(
      this.element,
      () => this.#pages.read(),
      (page) => this.#render(page),
      options,
    );
  }

  /** @param {import("../content/list-pages.js").DocumentPage} page */
  #render(page) {
    const { none, noneText, complete, count, countMissing, columns } = words.studio.entries;
    const { documents: own } = words.content;
    const { documents, total } = page;
    if (!documents.length) {
      if (!this.#missing || !total) return emptyView(none, noneText);
      return h("p", { class: "quiet-text", role: "status" }, complete);
    }
    const places = this.model.i18n ? this.view.locales : [SHARED];
    const heads = places.map((place) => (place === SHARED ? columns.all : place));
    const rows = documents.map((document) => this.#cells(document, places));
    const caption = this.#missing ? countMissing(this.#missing) : count(total, formatCount(total));
    return [
      table(caption, [columns.entry, ...heads, own.columns.status, number(own.columns.changed)], rows),
      this.#pages.buttons(page, () => this.load(), this.#missing ? undefined : total),
    ];
  }

  /** @param {any} document @param {string[]} places */
  #cells({ id, title, slug, status, locales, updatedAt }, places) {
    const name = title || slug || id;
    const link = h("a", { href: this.view.linkTo("documents", this.model.id, id) }, h("bdi", {}, name));
    return [
      link,
      ...places.map((place) => this.#localeCell(id, name, place, locales.includes(place))),
      statusTag(status),
      formatInstant(updatedAt),
    ];
  }

  /** @param {string} id @param {string} name @param {string} place @param {boolean} isWritten */
  #localeCell(id, name, place, isWritten) {
    const { written, missing, open } = words.studio.entries;
    const text = isWritten ? written : missing;
    const address = this.view.linkTo("documents", this.model.id, id, ...(place === SHARED ? [] : [place]));
    const label = open(name, place === SHARED ? words.content.document.shared : place, text);
    return h("a", { href: address, class: isWritten ? "tag good" : "tag warn", "aria-label": label }, text);
  }
}
