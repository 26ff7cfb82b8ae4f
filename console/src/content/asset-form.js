/** The form of a stored file: what it shows, in each language, what it is called, and what is kept of it when it is cut. */

import { field, h } from "../dom.js";
import { words } from "../words/index.js";
import { changedLocales } from "./content-difference.js";
import { makeFocalPoint } from "./focal-point.js";

/** Where a document keeps what is the same in all languages. */
export const SHARED = "data";
const MAX_TITLE = 500;

export class AssetForm {
  #problem = h("div", { class: "form-problem-place" });
  /** Alternative texts in the languages that are not the default. @type {Map<string, HTMLTextAreaElement>} */
  #altTexts = new Map();

  /**
   * @param {any} asset
   * @param {string[]} locales Of the space, the default first.
   * @param {HTMLElement} image Where the focal point is shown.
   */
  constructor(asset, locales, image) {
    this.asset = asset;
    const { alt, altHint, altIn, filename, description, tags, tagsHint, describe, describeHint } = words.media;
    const fields = asset.locales[SHARED] ?? {};
    this.alt = h("textarea", { rows: 2, value: textOf(fields.alt) });
    for (const locale of locales.slice(1)) {
      const own = h("textarea", { rows: 2, value: textOf(fields.altTexts?.[locale]), lang: locale, dir: "auto" });
      this.#altTexts.set(locale, own);
    }
    this.filename = h("input", { value: textOf(fields.filename), maxLength: 255, autocomplete: "off" });
    this.description = h("textarea", { rows: 3, value: textOf(fields.description) });
    this.tags = h("textarea", { rows: 2, value: listOf(fields.tags).join("\n") });
    this.focalPoint = isCuttable(fields) ? makeFocalPoint(image, fields.focalPoint) : undefined;
    const save = h("button", { type: "submit", class: "button primary" }, words.content.document.save);
    this.describe = h("button", { type: "button", class: "button", title: describeHint }, describe);
    const altTexts = [...this.#altTexts].map(([locale, control]) => field(altIn(locale), control));
    this.element = h(
      "form",
      { class: "fields", noValidate: true },
      field(alt, this.alt, altTexts.length ? `${altHint} ${words.media.altDefault}` : altHint),
      ...altTexts,
      field(filename, this.filename),
      field(description, this.description),
      field(tags, this.tags, tagsHint),
      this.focalPoint?.element,
      this.#problem,
      h("div", { class: "form-end" }, this.describe, save),
    );
  }

  /** @returns {any} What was changed, as the service wants it. The title follows the alternative text. */
  readChange() {
    const before = this.asset.locales[SHARED] ?? {};
    const tags = this.tags.value
      .split("\n")
      .map((tag) => tag.trim())
      .filter(Boolean);
    /** @type {Record<string, any>} */
    const own = {
      alt: this.alt.value.trim() || undefined,
      altTexts: this.#readAltTexts(before.altTexts),
      filename: this.filename.value.trim() || undefined,
      description: this.description.value.trim() || undefined,
      tags: tags.length ? tags : undefined,
      focalPoint: this.focalPoint ? this.focalPoint.read() : before.focalPoint,
    };
    const known = Object.fromEntries(Object.keys(own).map((name) => [name, before[name]]));
    const locales = changedLocales({ [SHARED]: withoutEmpty(known) }, { [SHARED]: withoutEmpty(own) });
    if (!Object.keys(locales).length) return {};
    const isNamedAnew = "alt" in locales[SHARED] || "filename" in locales[SHARED];
    const title = [...(own.alt ?? own.filename ?? "")].slice(0, MAX_TITLE).join("");
    return isNamedAnew && title && title !== this.asset.title ? { title, locales } : { locales };
  }

  /** Those of languages that the space does not have stay. @param {any} before */
  #readAltTexts(before) {
    const read = [...this.#altTexts].map(([locale, control]) => [locale, control.value.trim() || undefined]);
    const texts = withoutEmpty({ ...(typeof before === "object" ? before : {}), ...Object.fromEntries(read) });
    return Object.keys(texts).length ? texts : undefined;
  }

  isChanged() {
    return Object.keys(this.readChange()).length > 0;
  }

  /** @param {HTMLElement} problem */
  tell(problem) {
    this.#problem.replaceChildren(problem);
    problem.scrollIntoView({ block: "nearest" });
  }

  /** @param {() => void} onLoad */
  tellChangedMeanwhile(onLoad) {
    if (this.#problem.querySelector(".meanwhile")) return;
    const { changedMeanwhile, loadNewest } = words.content.document;
    const load = h("button", { type: "button", class: "button", onclick: onLoad }, loadNewest);
    this.tell(h("div", { class: "problem meanwhile", role: "alert" }, h("p", {}, changedMeanwhile), load));
  }
}

/** Whether sizes are cut of it. @param {any} fields */
function isCuttable({ mediaType, width, height }) {
  return /^image\/(?!svg)/.test(textOf(mediaType)) && width > 0 && height > 0;
}

/** @param {any} value */
const textOf = (value) => (typeof value === "string" ? value : "");

/** @param {any} value @returns {any[]} */
export const listOf = (value) => (Array.isArray(value) ? value : []);

/** @param {Record<string, any>} fields */
function withoutEmpty(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}
