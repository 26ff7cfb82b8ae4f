/** What can be said of a field of each type, and how a form says it. */

import { withoutDefaults } from "./own-definition.js";

/** All types of fields, the usual ones first. */
export const FIELD_TYPES = /** @type {const} */ ([
  "string",
  "text",
  "markdown",
  "richtext",
  "number",
  "integer",
  "decimal",
  "percent",
  "rating",
  "boolean",
  "date",
  "datetime",
  "select",
  "image",
  "video",
  "file",
  "relation",
  "relations",
  "email",
  "url",
  "slug",
  "phone",
  "color",
  "icon",
  "code",
  "array",
  "object",
]);
const TEXTS = ["string", "text", "markdown", "richtext", "email", "url", "slug", "phone", "color", "icon", "code"];
const NUMBERS = ["number", "integer", "decimal", "percent", "rating"];
const LISTS = ["relations", "array"];
/** The types that each setting is for. */
const SETTINGS = /** @type {Record<FieldSetting, readonly string[]>} */ ({
  min: [...TEXTS, ...NUMBERS, ...LISTS],
  max: [...TEXTS, ...NUMBERS, ...LISTS],
  pattern: TEXTS,
  unique: ["string", "email", "url", "slug", "phone", "code", "integer", "number", "date"],
  options: ["select"],
  model: ["relation", "relations"],
  items: ["array"],
  fields: ["object"],
  accept: ["image", "video", "file"],
  maxSize: ["image", "video", "file"],
});

/** @typedef {"min" | "max" | "pattern" | "unique" | "options" | "model" | "items" | "fields" | "accept" | "maxSize"} FieldSetting */
/** @typedef {"name" | "taken" | "min" | "max" | "order" | "options" | "model" | "items" | "fields" | "maxSize"} FieldProblem */

/** Thrown with the name of what is wrong, so that its reader says it in words. */
export class FieldProblemError extends Error {
  /** @param {FieldProblem} problem */
  constructor(problem) {
    super(problem);
    this.problem = problem;
  }
}

/** @param {FieldSetting} setting @param {string} type */
export function hasSetting(setting, type) {
  return SETTINGS[setting].includes(type);
}

/**
 * Return the definition that a form says. What it does not know of the field stays.
 *
 * @param {(name: string) => string} read Returns what a control says; a box that is checked says `on`.
 * @param {any} known The definition before.
 * @returns {any}
 * @throws {FieldProblemError} Something cannot be read.
 */
export function readFieldDefinition(read, known = {}) {
  const type = read("type");
  const { required, unique, min, max, pattern, options, model, items, fields, accept, maxSize, description, ...kept } =
    known;
  const readers = /** @type {Record<FieldSetting, () => any>} */ ({
    min: () => readNumber(read("min"), "min"),
    max: () => readNumber(read("max"), "max"),
    pattern: () => read("pattern"),
    unique: () => read("unique") === "on",
    options: () => readList(read("options"), /\n/, "options"),
    model: () => readList(read("model"), /[\s,]+/, "model"),
    items: () => readItems(read("items")),
    fields: () => readObject(read("fields"), "fields"),
    accept: () => read("accept"),
    maxSize: () => readNumber(read("maxSize"), "maxSize"),
  });
  const own = Object.entries(readers)
    .filter(([name]) => hasSetting(/** @type {FieldSetting} */ (name), type))
    .map(([name, readOwn]) => [name, readOwn()]);
  const said = { required: read("required") === "on", ...Object.fromEntries(own), description: read("description") };
  if (said.min !== undefined && said.max !== undefined && said.min > said.max) throw new FieldProblemError("order");
  const isSaid = (/** @type {[string, any]} */ [, value]) => value !== undefined && value !== "" && value !== false;
  return { ...kept, type, ...Object.fromEntries(Object.entries(said).filter(isSaid)) };
}

/**
 * Return the name of a field that is new.
 *
 * @param {string} text
 * @param {readonly string[]} taken
 */
export function readFieldName(text, taken) {
  if (!/^[A-Za-z_][A-Za-z0-9_-]{0,99}$/.test(text)) throw new FieldProblemError("name");
  if (taken.includes(text)) throw new FieldProblemError("taken");
  return text;
}

/** @param {string} text @param {FieldProblem} problem */
function readNumber(text, problem) {
  if (!text) return undefined;
  const number = Number(text);
  if (!Number.isFinite(number)) throw new FieldProblemError(problem);
  return number;
}

/** @param {string} text @param {RegExp} between @param {FieldProblem} problem */
function readList(text, between, problem) {
  const parts = text.split(between).map((part) => part.trim());
  const found = [...new Set(parts)].filter(Boolean);
  if (!found.length) throw new FieldProblemError(problem);
  return found;
}

/**
 * Say the items of a list, as they are read again: their type, or all that is said of them as JSON.
 *
 * @param {any} items
 * @returns {string}
 */
export function sayItems(items) {
  if (!items) return "string";
  if (typeof items === "string") return items;
  const said = withoutDefaults(items);
  return Object.keys(said).length === 1 ? said.type : JSON.stringify(said);
}

/** The items of a list: only their type, or all of it as JSON. @param {string} text */
function readItems(text) {
  if (/** @type {readonly string[]} */ (FIELD_TYPES).includes(text)) return { type: text };
  return readObject(text, "items");
}

/** @param {string} text @param {FieldProblem} problem */
function readObject(text, problem) {
  try {
    const value = JSON.parse(text || "{}");
    if (value && typeof value === "object" && !Array.isArray(value)) return value;
  } catch {
    // it is said below
  }
  throw new FieldProblemError(problem);
}
