/** The arguments of a call: as a person reads them, and as fields in which they are changed. */

/** @import { ApprovalWords } from "./approval-words.js" */
import { h } from "../view/dom.js";

const MAX_SHOWN = 4_000;
const MAX_ROWS = 8;

/** @typedef {Record<string, any>} Json */

/** Arguments that cannot be read. Its message is for the person who has written them. */
export class ArgumentError extends Error {}

/**
 * The arguments by their names. What is too long is cut; what is no text is JSON.
 *
 * @param {any} input
 * @param {ApprovalWords} words
 */
export function argumentList(input, words) {
  const members = Object.entries(isRecord(input) ? input : { "": input }).filter(([, value]) => value !== undefined);
  if (!members.length) return h("p", { class: "approval-quiet" }, words.noArguments);
  const rows = members.map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, readable(value, words))),
  );
  const list = h("dl", {}, ...rows);
  return h("div", { class: "approval-arguments", tabIndex: 0, role: "group", "aria-label": words.arguments }, list);
}

/** @param {any} value @param {ApprovalWords} words */
function readable(value, words) {
  if (typeof value === "boolean") return value ? words.yes : words.no;
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)} …` : text;
}

/** @param {any} value */
function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A field for each argument that a call has or its tool takes. */
export class ArgumentFields {
  /** @type {{name: string, read: () => any}[]} */
  #fields = [];

  /**
   * @param {Json} input
   * @param {Json | null} schema The tool's, where it is known: the service checks what is sent.
   * @param {ApprovalWords} words
   */
  constructor(input, schema, words) {
    this.words = words;
    const given = isRecord(input) ? input : {};
    const known = schema?.properties ?? {};
    this.element = h("div", { class: "approval-fields" });
    for (const name of new Set([...Object.keys(given), ...Object.keys(known)])) this.#add(name, given, known[name]);
  }

  /**
   * @returns {Json}
   * @throws {ArgumentError}
   */
  read() {
    const values = this.#fields.map(({ name, read }) => [name, read()]);
    return Object.fromEntries(values.filter(([, value]) => value !== undefined));
  }

  /** @param {string} name @param {Json} input @param {Json} [schema] */
  #add(name, input, schema) {
    const value = input[name];
    const isGiven = Object.hasOwn(input, name);
    const { control, read } = this.#make(name, value, isGiven, typeOf(value, isGiven, schema), schema);
    this.#fields.push({ name, read });
    const hint = schema?.description ? h("small", {}, schema.description) : null;
    this.element.append(h("label", { class: "approval-field" }, h("span", {}, name), control, hint));
  }

  /**
   * @param {string} name
   * @param {any} value
   * @param {boolean} isGiven An argument that was not given stays away until something is written into its field.
   * @param {string} type
   * @param {Json} [schema]
   */
  #make(name, value, isGiven, type, schema) {
    const choices = choicesOf(schema);
    if (choices && type === "string") return selectField(value, isGiven, choices);
    if (type === "boolean") {
      const control = h("input", { type: "checkbox", checked: value === true });
      return { control, read: () => (isGiven || control.checked ? control.checked : undefined) };
    }
    const text = isGiven ? (type === "string" ? value : JSON.stringify(value, null, 2)) : "";
    const rows = Math.min(MAX_ROWS, Math.max(1, text.split("\n").length, Math.ceil(text.length / 60)));
    const control = h("textarea", { rows, value: text, spellcheck: type === "string", dir: "auto" });
    if (type !== "string") control.classList.add("approval-code");
    const read = () => this.#parse(name, control.value, isGiven, type);
    return { control, read };
  }

  /** @param {string} name @param {string} text @param {boolean} isGiven @param {string} type */
  #parse(name, text, isGiven, type) {
    if (type === "string") return text || isGiven ? text : undefined;
    if (!text.trim()) return undefined;
    try {
      const value = JSON.parse(text);
      if (type !== "number" || typeof value === "number") return value;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    throw new ArgumentError(type === "number" ? this.words.notNumber(name) : this.words.notJson(name));
  }
}

/** @param {any} value @param {boolean} isGiven @param {string[]} choices */
function selectField(value, isGiven, choices) {
  const offered = isGiven ? [...new Set([value, ...choices])] : ["", ...choices];
  const control = h("select", {}, ...offered.map((choice) => h("option", { value: choice }, choice)));
  control.value = isGiven ? value : "";
  return { control, read: () => control.value || undefined };
}

/** @param {Json} [schema] @returns {string[] | undefined} */
function choicesOf(schema) {
  const consts = schema?.anyOf?.map((/** @type {Json} */ each) => each.const);
  const choices = schema?.enum ?? consts;
  return choices?.every((/** @type {unknown} */ each) => typeof each === "string") ? choices : undefined;
}

/** @param {any} value @param {boolean} isGiven @param {Json} [schema] */
function typeOf(value, isGiven, schema) {
  if (isGiven && ["string", "boolean", "number"].includes(typeof value)) return typeof value;
  if (isGiven) return "json";
  if (choicesOf(schema)) return "string";
  const type = schema?.type;
  return type === "integer" ? "number" : ["string", "boolean", "number"].includes(type) ? type : "json";
}
