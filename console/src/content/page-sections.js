/** The sections of a page: their order, and what each of them says in one language. */

import { h, field as labelled } from "../dom.js";
import { words } from "../words/index.js";
import { makeFieldsForm } from "./locale-form.js";

/** @typedef {{id: string, model: string, status?: string}} Section */

/**
 * Make the form of a page's sections in one language.
 *
 * @param {Section[]} sections
 * @param {any[]} models
 * @param {Record<string, any>} content What the page says in this language.
 * @returns {import("./locale-form.js").LocaleForm}
 */
export function makeSectionsForm(sections, models, content) {
  if (!sections.length) {
    const element = h("p", { class: "quiet-text" }, words.content.document.noSections);
    return { element, read: () => content };
  }
  const forms = sections.map((section) => {
    const model = models.find(({ id }) => id === section.model) ?? { fields: {} };
    return /** @type {const} */ ([section, makeFieldsForm(model, content[section.id] ?? {})]);
  });
  const parts = forms.map(([{ id, model, status }, form], index) =>
    h(
      "details",
      { class: "section-fields", open: index < 3, "data-key": id },
      h("summary", {}, h("strong", {}, model), " ", h("span", { class: "quiet-text" }, id), hiddenTag(status)),
      form.element,
    ),
  );
  return {
    element: h("div", {}, ...parts),
    read: () => {
      const read = forms.map(([{ id }, form]) => /** @type {const} */ ([id, form.read()]));
      const said = read.filter(([id, fields]) => Object.keys(fields).length || id in content);
      return { ...content, ...Object.fromEntries(said) };
    },
  };
}

/** @param {string | undefined} status */
function hiddenTag(status) {
  return status === "unpublished" && h("span", { class: "tag" }, words.content.document.hidden);
}

/**
 * Make the list of a page's sections, in which they are moved, hidden, removed and added.
 *
 * @param {string} page The id of the page, with which the ids of its sections begin.
 * @param {Section[]} sections
 * @param {any[]} models
 * @returns {{element: HTMLElement, read: () => Section[]}}
 */
export function makeSectionOrder(page, sections, models) {
  let own = sections.map((section) => ({ ...section }));
  const list = h("ol", { class: "section-order" });
  const change = (/** @type {Section[]} */ changed) => {
    own = changed;
    list.replaceChildren(...own.map((section, index) => sectionRow(own, section, index, change)));
  };
  change(own);
  const choices = models.filter(({ kind }) => kind === "section");
  const select = h("select", {}, ...choices.map(({ id, title }) => h("option", { value: id }, title || id)));
  const add = () =>
    change([...own, { id: `${page}.${crypto.randomUUID().slice(0, 8)}`, model: select.value, status: "published" }]);
  const adding = choices.length > 0 && [
    labelled(words.content.document.addSection, select),
    h("button", { type: "button", class: "button", onclick: add }, words.add),
  ];
  return { element: h("div", {}, list, h("div", { class: "adding" }, adding)), read: () => own };
}

/** @param {Section[]} all @param {Section} section @param {number} index @param {(changed: Section[]) => void} change */
function sectionRow(all, section, index, change) {
  const { moveUp, moveDown, removeSection, shown } = words.content.document;
  const moved = (/** @type {number} */ to) => {
    const rest = all.filter((each) => each !== section);
    change([...rest.slice(0, to), section, ...rest.slice(to)]);
  };
  const button = (/** @type {string} */ text, /** @type {() => void} */ onclick, disabled = false) =>
    h("button", { type: "button", class: "link", "aria-label": `${text} ${section.id}`, onclick, disabled }, text);
  const toggle = (/** @type {Event} */ event) => {
    const { checked } = /** @type {HTMLInputElement} */ (event.target);
    section.status = checked ? "published" : "unpublished";
  };
  const box = h("input", { type: "checkbox", checked: section.status !== "unpublished", onchange: toggle });
  return h(
    "li",
    {},
    h("span", {}, h("strong", {}, section.model), " ", h("span", { class: "quiet-text" }, section.id)),
    h("label", { class: "check" }, box, shown),
    h(
      "div",
      { class: "row-actions" },
      button(moveUp, () => moved(index - 1), index === 0),
      button(moveDown, () => moved(index + 1), index === all.length - 1),
      button(removeSection, () => change(all.filter((each) => each !== section))),
    ),
  );
}
