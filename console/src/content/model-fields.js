/** The fields of a model as a list in which they are added, changed, moved and removed. */

import { h } from "../dom.js";
import { words } from "../words/index.js";
import { askForField } from "./field-dialog.js";
import { listLimits } from "./field-limits.js";

/**
 * Make the list. It changes nothing by itself: whoever asked for it stores what it is told.
 *
 * @param {string} model What the list is called after.
 * @param {Record<string, any>} fields
 * @param {(fields: Record<string, any>) => void} onChange
 * @returns {{element: HTMLElement, show: (fields: Record<string, any>) => void}}
 */
export function makeModelFields(model, fields, onChange) {
  const { editor, fieldsOf } = words.content.models;
  const list = h("ol", { class: "section-order model-fields", "aria-label": fieldsOf(model) });
  let shown = fields;
  const change = (/** @type {[string, any][]} */ entries, /** @type {string} */ focused = "") => {
    show(Object.fromEntries(entries));
    onChange(shown);
    const row = [...list.children].find((each) => each.getAttribute("data-key") === focused);
    const first = /** @type {HTMLElement | null | undefined} */ (row?.querySelector("button:not(:disabled)"));
    (first ?? add).focus();
  };
  const ask = async (/** @type {string} */ known = "") => {
    const field = known ? { name: known, definition: shown[known] } : undefined;
    const made = await askForField(Object.keys(shown), field);
    if (made) change(Object.entries({ ...shown, [made.name]: made.definition }), made.name);
  };
  const show = (/** @type {Record<string, any>} */ now) => {
    shown = now;
    const entries = Object.entries(now);
    const none = h("li", { class: "quiet-text" }, editor.none);
    list.replaceChildren(
      ...(entries.length ? entries.map((_, index) => fieldRow(entries, index, ask, change)) : [none]),
    );
  };
  const add = h("button", { type: "button", class: "button", onclick: () => ask() }, editor.add);
  show(fields);
  return { element: h("div", {}, list, h("div", { class: "adding" }, add)), show };
}

/**
 * @param {[string, any][]} entries
 * @param {number} index
 * @param {(name: string) => void} ask
 * @param {(entries: [string, any][], focused?: string) => void} change
 */
function fieldRow(entries, index, ask, change) {
  const { rules, editor } = words.content.models;
  const { moveUp, moveDown, removeSection } = words.content.document;
  const [name, definition] = entries[index];
  const tags = Object.entries(rules).map(([rule, text]) => definition?.[rule] && h("span", { class: "tag" }, text));
  const limits = listLimits(definition ?? {}).map((text) => h("span", { class: "tag" }, h("bdi", {}, text)));
  const button = (/** @type {string} */ text, /** @type {() => void} */ onclick, disabled = false) =>
    h("button", { type: "button", class: "link", "aria-label": `${text} ${name}`, disabled, onclick }, text);
  const move = (/** @type {number} */ to) => () => {
    const moved = entries.toSpliced(index, 1);
    change(moved.toSpliced(to, 0, entries[index]), name);
  };
  const label = h(
    "div",
    {},
    h("strong", {}, h("bdi", {}, name)),
    " ",
    h("span", { class: "quiet-text" }, definition?.type),
  );
  const told = definition?.description && h("div", { class: "quiet-text" }, h("bdi", {}, definition.description));
  return h(
    "li",
    { "data-key": name },
    h("div", {}, label, told),
    h("div", { class: "tags" }, ...tags, ...limits),
    h(
      "div",
      { class: "row-actions" },
      button(editor.change, () => ask(name)),
      button(moveUp, move(index - 1), index === 0),
      button(moveDown, move(index + 1), index === entries.length - 1),
      button(removeSection, () => change(entries.toSpliced(index, 1))),
    ),
  );
}
