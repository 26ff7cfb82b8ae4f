/** Say in words what a tool call does. */

/** @import { Messages } from "../messages.js" */

const MAX_NAME = 80;

/** What of its input a call is described by. @type {Record<string, (input: any) => string>} */
const SUBJECTS = {
  renameNode: ({ label }) => nameOf(label),
  applyCss: ({ css }) => selectorOf(css),
  assignClass: ({ className, name }) => nameOf(className ?? name),
  removeClass: ({ className, name }) => nameOf(className ?? name),
  addPage: ({ title, name }) => nameOf(title ?? name),
};

/**
 * A few words for a call. An unknown tool shows its name, with spaces; a model may call one by any name.
 *
 * @param {string} name Of any dialect: `insertHtml` or `site_insert_html`.
 * @param {any} input
 * @param {Messages["calls"]} words
 */
export function describeCall(name, input, words) {
  const known = [name, toCamelCase(name)].find((each) => Object.hasOwn(words, each));
  const found = known && words[/** @type {keyof Messages["calls"]} */ (known)];
  if (typeof found === "string") return found;
  if (found) return found(SUBJECTS[/** @type {string} */ (known)](input ?? {})).trim();
  const spaced = name
    .replace(/^(?:site|content|data|plugin)_/, "")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ");
  return spaced.charAt(0).toUpperCase() + spaced.slice(1).toLowerCase();
}

/** @param {string} name */
function toCamelCase(name) {
  return name.replace(/^site_/, "").replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

/** Part of a name that the model gave, if it is one. @param {unknown} value */
function nameOf(value) {
  return typeof value === "string" ? value.slice(0, MAX_NAME) : "";
}

/** @param {unknown} css */
function selectorOf(css) {
  const start = typeof css === "string" ? css.slice(0, MAX_NAME).trimStart() : "";
  return /^([^{@]{1,40}?)\s*\{/.exec(start)?.[1] ?? "";
}
