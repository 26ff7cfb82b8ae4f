/** What visitors see of a form. Their page draws it; this shows what it is made of. */

import { field, h } from "../dom.js";
import { words } from "../words/index.js";
import { INPUT_TYPES } from "./form-snippet.js";

/** @import { FormState } from "./form-rules.js" */

/** @param {FormState} state @param {any} model */
export function formPreview(state, { fields }) {
  const { preview, closed, needed, solve, thanks, standardMessage } = words.studio.forms;
  const shown = state.fields.filter(({ isShown }) => isShown);
  const rows = shown.map(({ name, isRequired }) =>
    field(isRequired ? `${name} (${needed})` : name, controlOf(fields[name]), fields[name].description),
  );
  const isOpen = state.enabled && state.public;
  return h(
    "section",
    { class: "card form-preview", "aria-label": preview },
    h("h3", {}, preview),
    !isOpen && h("p", { class: "quiet-text" }, closed),
    h("div", { class: "fields", inert: true }, ...rows, state.captcha && h("p", { class: "quiet-text" }, solve)),
    h("p", { class: "quiet-text" }, `${thanks} `, h("q", {}, state.successMessage || standardMessage)),
  );
}

/** @param {any} definition */
function controlOf({ type, options }) {
  if (type === "text") return h("textarea", { rows: 3 });
  if (type === "select") {
    return h("select", {}, ...(options ?? []).map((/** @type {string} */ option) => h("option", {}, option)));
  }
  return h("input", { type: INPUT_TYPES[type] ?? "text" });
}
