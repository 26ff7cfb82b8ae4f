/** The form of a document: its title, slug and status, and what it says in each language. */

import { field, h } from "../dom.js";
import { words } from "../words/index.js";
import { changedLocales } from "./content-difference.js";
import { makeFieldsForm, makeTextsForm } from "./locale-form.js";
import { makeSectionOrder, makeSectionsForm } from "./page-sections.js";

/** Where a document keeps what is the same in all languages. */
const SHARED = "data";

export class DocumentForm {
  /** @type {{locale: string, read: () => Record<string, any>}[]} */
  #parts = [];
  #problem = h("div", { class: "form-problem-place" });

  /**
   * @param {any} document
   * @param {any} model
   * @param {any[]} models
   * @param {string[]} locales
   * @param {string} [openLocale] The language that is unfolded; without one, the first.
   */
  constructor(document, model, models, locales, openLocale) {
    this.document = document;
    this.openLocale = openLocale && model.i18n && locales.includes(openLocale) ? openLocale : undefined;
    this.model = model;
    const { title, slug, slugHint } = words.content.documents;
    const { save } = words.content.document;
    this.title = h("input", { value: document.title, maxLength: 500 });
    this.slug = h("input", { value: document.slug, spellcheck: false, autocomplete: "off" });
    this.status = h("select", {}, ...Object.entries(words.content.statuses).map(statusOption));
    this.status.value = document.status;
    this.element = h(
      "form",
      { class: "document-form", noValidate: true },
      h(
        "div",
        { class: "document-head" },
        field(title, this.title),
        field(slug, this.slug, slugHint),
        field(words.content.status, this.status),
      ),
      ...this.#localeParts(models, locales),
      this.#problem,
      h("div", { class: "form-end" }, h("button", { type: "submit", class: "button primary" }, save)),
    );
  }

  /** @param {any[]} models @param {string[]} locales */
  #localeParts(models, locales) {
    const { model, document } = this;
    if (model.kind === "page") return this.#pageParts(models, locales);
    const named = Object.keys(document.locales).filter((locale) => locale !== SHARED);
    const shown = model.i18n ? [...new Set([...locales, ...named])] : [SHARED];
    return shown.map((locale, index) => {
      const content = document.locales[locale] ?? {};
      const form = isOfTexts(model) ? makeTextsForm(content) : makeFieldsForm(model, content);
      return this.#part(locale, form, this.#isOpen(locale, index));
    });
  }

  /** @param {any[]} models @param {string[]} locales */
  #pageParts(models, locales) {
    const { model, document } = this;
    const shared = document.locales[SHARED] ?? {};
    const sections = shared.sections ?? [];
    const order = makeSectionOrder(document.id, sections, models);
    const own = makeFieldsForm(model, shared);
    const read = () => ({ ...own.read(), ...sectionsOf(order.read(), shared) });
    this.#parts.push({ locale: SHARED, read });
    const parts = locales.map((locale, index) =>
      this.#part(
        locale,
        makeSectionsForm(sections, models, document.locales[locale] ?? {}),
        this.#isOpen(locale, index),
      ),
    );
    const { sections: title, shared: ofAll } = words.content.document;
    return [fold(title, order.element, true), ...parts, fold(ofAll, own.element, false)];
  }

  /** @param {string} locale @param {number} index */
  #isOpen(locale, index) {
    return this.openLocale ? locale === this.openLocale : index === 0;
  }

  /** @param {string} locale @param {import("./locale-form.js").LocaleForm} form @param {boolean} isOpen */
  #part(locale, form, isOpen) {
    this.#parts.push({ locale, read: form.read });
    return fold(locale === SHARED ? words.content.document.shared : locale, form.element, isOpen);
  }

  /**
   * Return what was changed, as the service wants it.
   *
   * @returns {any}
   * @throws {Error} A field cannot be read.
   */
  readChange() {
    const { document } = this;
    const own = { title: this.title.value.trim(), slug: this.slug.value.trim(), status: this.status.value };
    const changed = Object.fromEntries(Object.entries(own).filter(([name, value]) => value !== (document[name] ?? "")));
    const read = Object.fromEntries(this.#parts.map((part) => [part.locale, part.read()]));
    const before = Object.fromEntries(this.#parts.map(({ locale }) => [locale, document.locales[locale] ?? {}]));
    const locales = changedLocales(before, read);
    return Object.keys(locales).length ? { ...changed, locales } : changed;
  }

  isChanged() {
    try {
      return Object.keys(this.readChange()).length > 0;
    } catch {
      return true; // somebody is in the middle of it
    }
  }

  /** @param {HTMLElement} problem @param {any[]} [problems] What is wrong with which field. */
  tell(problem, problems = []) {
    const list = problems.map(({ field: name, message }) => h("li", {}, h("code", {}, name), " ", message));
    if (list.length) problem.append(h("ul", { class: "problems" }, ...list));
    this.#problem.replaceChildren(problem);
    problem.scrollIntoView({ block: "nearest" });
  }

  /** @param {() => void} onLoad */
  tellChangedMeanwhile(onLoad) {
    if (this.#problem.querySelector(".meanwhile")) return;
    const { changedMeanwhile, loadNewest } = words.content.document;
    const load = h("button", { type: "button", class: "button", onclick: onLoad }, loadNewest);
    this.#problem.replaceChildren(
      h("div", { class: "problem meanwhile", role: "alert" }, h("p", {}, changedMeanwhile), load),
    );
  }
}

/** @param {any} model */
function isOfTexts({ kind, fields }) {
  return kind === "dictionary" || Object.keys(fields ?? {}).length === 0;
}

/** @param {[string, string]} entry */
function statusOption([value, text]) {
  return h("option", { value }, text);
}

/** @param {string} title @param {HTMLElement} element @param {boolean} isOpen */
function fold(title, element, isOpen) {
  return h("details", { class: "fold", open: isOpen, "data-key": title }, h("summary", {}, title), element);
}

/** @param {any[]} sections @param {Record<string, any>} shared */
function sectionsOf(sections, shared) {
  return sections.length || shared.sections ? { sections } : {};
}
