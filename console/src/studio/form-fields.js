/** The fields of a form: which of the model's are shown, which are required, and in which order. */

import { h } from "../dom.js";
import { words } from "../words/index.js";

/** @import { FormField, FormState } from "./form-rules.js" */

/**
 * Make the list of a model's fields, from which those of its form are chosen.
 *
 * @param {FormState} state Whose fields change.
 * @param {(list: HTMLElement) => void} onChange
 */
export function formFields(state, onChange) {
  const { fields, fieldsHint } = words.studio.forms;
  const list = h("ol", { class: "section-order", tabIndex: -1, "aria-label": fields });
  const show = () => {
    list.replaceChildren(...state.fields.map((_, index) => fieldRow(state, index, changed, move)));
    onChange(list);
  };
  const changed = () => onChange(list);
  const move = (/** @type {number} */ from, /** @type {number} */ to) => {
    const [moved] = state.fields.splice(from, 1);
    state.fields.splice(to, 0, moved);
    show();
    const [up, down] = list.children[to].querySelectorAll("button");
    (to < from ? [up, down] : [down, up]).find((button) => !button.disabled)?.focus();
  };
  show();
  return h("fieldset", {}, h("legend", {}, fields), h("p", { class: "quiet-text" }, fieldsHint), list);
}

/** @param {FormState} state @param {number} index @param {() => void} changed @param {(from: number, to: number) => void} move */
function fieldRow(state, index, changed, move) {
  const { shown, required, impossible } = words.studio.forms;
  const { moveUp, moveDown } = words.content.document;
  const own = state.fields[index];
  const needed = box(own, "isRequired", required, changed, !own.isPossible || !own.isShown);
  const chosen = box(
    own,
    "isShown",
    shown,
    () => {
      /** @type {HTMLInputElement} */ (needed.querySelector("input")).disabled = !own.isShown;
      changed();
    },
    !own.isPossible,
  ); // prettier-ignore
  const button = (/** @type {string} */ text, /** @type {number} */ to) =>
    h(
      "button",
      {
        type: "button",
        class: "link",
        "aria-label": `${text} ${own.name}`,
        disabled: to < 0 || to >= state.fields.length,
        onclick: () => move(index, to),
      },
      text,
    );
  return h(
    "li",
    {},
    h("span", {}, h("strong", {}, h("bdi", {}, own.name)), " ", h("span", { class: "quiet-text" }, own.type)),
    own.isPossible ? [chosen, needed] : h("span", { class: "quiet-text" }, impossible),
    h("div", { class: "row-actions" }, button(moveUp, index - 1), button(moveDown, index + 1)),
  );
}

/**
 * @param {FormField} field
 * @param {"isShown" | "isRequired"} member
 * @param {string} label
 * @param {() => void} onChange
 * @param {boolean} disabled
 */
function box(field, member, label, onChange, disabled) {
  const input = h("input", {
    type: "checkbox",
    checked: field[member],
    disabled,
    "aria-label": `${label} ${field.name}`,
  });
  input.addEventListener("change", () => {
    field[member] = input.checked;
    onChange();
  });
  return h("label", { class: "check" }, input, label);
}
