/** Inputs for the fields of a model: one for each of the 27 types. */

import { h, field as labelled } from "../dom.js";
import { words } from "../words/index.js";
import { toText } from "./content-difference.js";

/** @typedef {{element: HTMLElement, read: () => any}} FieldInput `read` returns undefined for an empty one, and throws what is wrong. */

const LONG_TEXTS = new Set(["text", "markdown", "richtext", "code"]);
const NUMBERS = new Set(["number", "integer", "decimal", "percent", "rating"]);
const TYPES_OF_INPUTS = /** @type {Record<string, string>} */ ({
  email: "email",
  url: "url",
  phone: "tel",
  date: "date",
});

/**
 * Make the input of a field.
 *
 * @param {string} name
 * @param {any} definition
 * @param {any} value
 * @returns {FieldInput}
 */
export function makeFieldInput(name, definition, value) {
  const { type } = definition;
  if (type === "boolean") return booleanInput(name, definition, value);
  if (type === "select" && definition.options) return selectInput(name, definition, value);
  if (NUMBERS.has(type)) return numberInput(name, definition, value);
  if (holdsLines(definition, value)) return linesInput(name, definition, value);
  if (holdsText(type) && (value === undefined || value === null || typeof value === "string"))
    return textInput(name, definition, value);
  return jsonInput(name, definition, value);
}

/** @param {string} type */
function holdsText(type) {
  return !["array", "object", "relations", "boolean"].includes(type);
}

/** Whether a field is a list of texts. @param {any} definition @param {any} value */
function holdsLines({ type, items, model }, value) {
  const isList = type === "array" ? items && holdsText(items.type) && !NUMBERS.has(items.type) : type === "relations";
  if (!isList || (model?.length ?? 0) > 1) return false;
  return (
    value === undefined || value === null || (Array.isArray(value) && value.every((item) => typeof item === "string"))
  );
}

/** @param {string} name @param {any} definition @param {any} value @returns {FieldInput} */
function booleanInput(name, definition, value) {
  const shown = Boolean(value ?? definition.default ?? false);
  const box = h("input", { type: "checkbox", checked: shown });
  const wasGiven = value !== undefined && value !== null;
  const element = h("label", { class: "check" }, box, labelOf(name, definition));
  return { element, read: () => (wasGiven || box.checked !== shown ? box.checked : undefined) };
}

/** @param {string} name @param {any} definition @param {any} value @returns {FieldInput} */
function selectInput(name, definition, value) {
  const select = h("select", {}, h("option", { value: "" }, "–"));
  select.append(...definition.options.map((/** @type {string} */ option) => h("option", { value: option }, option)));
  if (value && !definition.options.includes(value)) select.append(h("option", { value }, value));
  select.value = value ?? "";
  return {
    element: labelled(labelOf(name, definition), select, hintOf(definition)),
    read: () => select.value || undefined,
  };
}

/** @param {string} name @param {any} definition @param {any} value @returns {FieldInput} */
function numberInput(name, definition, value) {
  const step = definition.type === "integer" || definition.type === "rating" ? "1" : "any";
  const input = h("input", { type: "number", step, value: value ?? "", min: definition.min, max: definition.max });
  const read = () => (input.value === "" ? undefined : Number(input.value));
  return { element: labelled(labelOf(name, definition), input, hintOf(definition)), read };
}

/** @param {string} name @param {any} definition @param {any} value @returns {FieldInput} */
function textInput(name, definition, value) {
  const text = value ?? "";
  const isLong = LONG_TEXTS.has(definition.type) || text.includes("\n") || text.length > 120;
  const input = isLong
    ? h("textarea", { rows: Math.min(12, Math.max(3, Math.ceil(text.length / 80))), value: text })
    : h("input", { type: TYPES_OF_INPUTS[definition.type] ?? "text", value: text });
  if (definition.type === "code") input.classList.add("code");
  return {
    element: labelled(labelOf(name, definition), input, hintOf(definition)),
    read: () => input.value || undefined,
  };
}

/** @param {string} name @param {any} definition @param {any} value @returns {FieldInput} */
function linesInput(name, definition, value) {
  const lines = value ?? [];
  const input = h("textarea", { rows: Math.max(2, lines.length + 1), value: lines.join("\n") });
  const read = () => {
    const given = input.value.split("\n").filter((line) => line.trim());
    return given.length ? given : undefined;
  };
  const hint = [hintOf(definition), words.content.document.oneALine].filter(Boolean).join(" ");
  return { element: labelled(labelOf(name, definition), input, hint), read };
}

/** @param {string} name @param {any} definition @param {any} value @returns {FieldInput} */
function jsonInput(name, definition, value) {
  const text = value === undefined || value === null ? "" : JSON.stringify(value, null, 2);
  const rows = Math.min(16, Math.max(3, text.split("\n").length));
  const input = h("textarea", { rows, value: text, class: "code", spellcheck: false });
  const read = () => {
    if (!input.value.trim()) return undefined;
    if (input.value === text) return value;
    try {
      return JSON.parse(input.value);
    } catch {
      throw new Error(words.content.document.notJson(name));
    }
  };
  const hint = [hintOf(definition), words.content.document.asJson].filter(Boolean).join(" ");
  return { element: labelled(labelOf(name, definition), input, hint), read };
}

/** @param {string} name @param {any} definition */
function labelOf(name, { required }) {
  return required ? `${name} · ${words.content.document.required}` : name;
}

/** @param {any} definition */
function hintOf({ description, unique, pattern }) {
  const own = [description, unique && words.content.document.unique, pattern && toText(pattern)];
  return own.filter(Boolean).join(" ") || undefined;
}
