/** The form of what a document says in one language, or in all of them. */

import { h, field as labelled } from "../dom.js";
import { words } from "../words/index.js";
import { makeFieldInput } from "./field-input.js";

/** @typedef {{element: HTMLElement, read: () => Record<string, any>}} LocaleForm */

/**
 * Make the form of the fields of a model. What a document holds besides them stays as it is.
 *
 * @param {any} model
 * @param {Record<string, any>} content
 * @returns {LocaleForm}
 */
export function makeFieldsForm(model, content) {
  const inputs = Object.entries(model.fields ?? {}).map(
    ([name, definition]) => /** @type {const} */ ([name, makeFieldInput(name, definition, content[name])]),
  );
  return {
    element: h("div", { class: "fields" }, ...inputs.map(([, input]) => input.element)),
    read: () =>
      withoutEmpty({ ...content, ...Object.fromEntries(inputs.map(([name, input]) => [name, input.read()])) }),
  };
}

/**
 * Make the form of texts by keys, or of a document whose model has no fields.
 *
 * @param {Record<string, any>} content
 * @returns {LocaleForm}
 */
export function makeTextsForm(content) {
  /** @type {[HTMLInputElement | null, string, import("./field-input.js").FieldInput][]} */
  const rows = Object.entries(content).map(([key, value]) => [
    null,
    key,
    makeFieldInput(key, { type: "string" }, value),
  ]);
  const list = h("div", { class: "fields" }, ...rows.map(([, , input]) => input.element));
  const add = () => {
    const key = h("input", { type: "text", "aria-label": words.content.document.key });
    const input = makeFieldInput("", { type: "string" }, "");
    rows.push([key, "", input]);
    list.append(h("div", { class: "new-text" }, labelled(words.content.document.key, key), input.element));
    key.focus();
  };
  const button = h("button", { type: "button", class: "button", onclick: add }, words.content.document.addText);
  return {
    element: h("div", {}, list, button),
    read: () => {
      const read = rows.map(([key, name, input]) => [key ? key.value.trim() : name, input.read()]);
      return withoutEmpty(Object.fromEntries(read.filter(([name]) => name)));
    },
  };
}

/** @param {Record<string, any>} content */
function withoutEmpty(content) {
  return Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined));
}
