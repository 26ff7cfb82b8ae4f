/** Ask for a field of a model: what it is called, of which type it is, and what it may hold. */

import { askInDialog, field, h } from "../dom.js";
import { words } from "../words/index.js";
import {
  FIELD_TYPES,
  FieldProblemError,
  hasSetting,
  readFieldDefinition,
  readFieldName,
  sayItems,
} from "./field-definition.js";

/** @import { FieldSetting } from "./field-definition.js" */
/** @typedef {{name: string, definition: any}} NamedField */

/**
 * Ask for a new field, or for another definition of one.
 *
 * @param {readonly string[]} taken The names of the model's fields.
 * @param {NamedField} [known] The field that is changed. It keeps its name.
 * @returns {Promise<NamedField | undefined>} Nothing if nobody wanted it.
 */
export async function askForField(taken, known) {
  const own = words.content.models.editor;
  const controls = makeControls(known?.definition ?? { type: "string" });
  const name = h("input", { name: "name", required: true, value: known?.name ?? "", readOnly: Boolean(known) });
  Object.assign(name, { autocomplete: "off", spellcheck: false, maxLength: 100 });
  const content = [
    field(own.name, name, known ? own.nameStays : own.nameHint),
    field(own.type, controls.type),
    ...controls.settings,
  ];
  /** @type {NamedField | undefined} */
  let made;
  await askInDialog(known ? own.changeTitle(known.name) : own.add, content, {
    action: known ? own.apply : words.add,
    onAction: (data) => {
      const read = (/** @type {string} */ of) => String(data.get(of) ?? "").trim();
      try {
        const wanted = known?.name ?? readFieldName(read("name"), taken);
        made = { name: wanted, definition: readFieldDefinition(read, known?.definition) };
      } catch (error) {
        throw error instanceof FieldProblemError ? new Error(own.problems[error.problem]) : error;
      }
    },
  });
  return made;
}

/** The controls of a definition, of which those are shown that are for its type. @param {any} definition */
function makeControls(definition) {
  const own = words.content.models.editor;
  const type = h(
    "select",
    { name: "type" },
    ...FIELD_TYPES.map((each) => h("option", { value: each }, own.types[each])),
  );
  type.value = definition.type;
  const input = (/** @type {string} */ name, /** @type {any} */ value, members = {}) =>
    h("input", { name, value: value ?? "", autocomplete: "off", spellcheck: false, ...members });
  const lines = (/** @type {string} */ name, /** @type {string} */ value, members = {}) =>
    h("textarea", { name, rows: 3, value, spellcheck: false, ...members });
  const numeric = { inputMode: "decimal" };
  /** @type {[FieldSetting, HTMLElement][]} */
  const settings = [
    ["options", field(own.options, lines("options", (definition.options ?? []).join("\n")), own.optionsHint)],
    ["model", field(own.model, input("model", listOf(definition.model).join(", ")), own.modelHint)],
    ["items", field(own.items, input("items", sayItems(definition.items), { className: "code" }), own.itemsHint)],
    ["fields", field(own.fields, lines("fields", jsonOf(definition.fields), { className: "code" }), own.fieldsHint)],
    ["min", field(own.min, input("min", definition.min, numeric), own.boundsHint)],
    ["max", field(own.max, input("max", definition.max, numeric))],
    ["pattern", field(own.pattern, input("pattern", definition.pattern, { className: "code" }), own.patternHint)],
    ["accept", field(own.accept, input("accept", definition.accept), own.acceptHint)],
    ["maxSize", field(own.maxSize, input("maxSize", definition.maxSize, { inputMode: "numeric" }))],
    ["unique", box("unique", own.unique, definition.unique)],
  ];
  const show = () => {
    for (const [setting, element] of settings) element.hidden = !hasSetting(setting, type.value);
  };
  type.addEventListener("change", show);
  show();
  const description = lines("description", definition.description ?? "", { rows: 2, spellcheck: true });
  const always = [
    box("required", own.required, definition.required),
    field(own.description, description, own.descriptionHint),
  ];
  return { type, settings: [...settings.map(([, element]) => element), ...always] };
}

/** @param {string} name @param {string} label @param {boolean | undefined} checked */
function box(name, label, checked) {
  return h("label", { class: "check" }, h("input", { type: "checkbox", name, checked: Boolean(checked) }), label);
}

/** @param {any} value */
function listOf(value) {
  return typeof value === "string" ? [value] : (value ?? []);
}

/** @param {any} value */
function jsonOf(value) {
  return value ? JSON.stringify(value, null, 2) : "{}";
}
