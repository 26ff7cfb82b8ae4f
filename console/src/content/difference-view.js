/** Show what differs between two versions, field by field. */

import { h } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";
import { toText } from "./content-difference.js";
import { compareLines } from "./line-difference.js";
import { toLines } from "./value-lines.js";
import { compareWords } from "./word-difference.js";

/** What fits into its place without scrolling. */
const [LONG, MANY_LINES] = [200, 5];

/** @import { TextPart } from "./word-difference.js" */
/** @import { FieldDifference } from "./content-difference.js" */
/**
 * @typedef {object} DifferenceOptions
 * @property {boolean} [isWhole] Whether all of it is new, or all is gone: that each field is need not be said.
 * @property {(field: string, value: any) => string[] | undefined} [readLines] Returns the lines of a value that is no text.
 * @property {(field: string, line: string) => Node | undefined} [showLine] Returns what is shown of a line that is no text.
 */

/** @param {FieldDifference[]} differences @param {DifferenceOptions} [options] */
export function differenceView(differences, options = {}) {
  if (!differences.length) return h("p", { class: "quiet-text" }, words.content.difference.none);
  return h("dl", { class: "differences" }, ...differences.flatMap((difference) => rowsOf(difference, options)));
}

/** @param {FieldDifference} difference @param {DifferenceOptions} options */
function rowsOf(difference, options) {
  const { field, before, after, renamedFrom } = difference;
  const { renamed, added, removed } = words.content.difference;
  const tag = (/** @type {string} */ text) => [" ", h("span", { class: "tag" }, text)];
  const [isNew, isGone] = [isNothing(before), isNothing(after)];
  const told = renamedFrom ? renamed(splitField(renamedFrom).name) : isNew ? added : isGone && removed;
  const shown = told && (renamedFrom || !options.isWhole) ? tag(told) : [];
  const name = h("dt", {}, fieldName(field), ...shown);
  if (renamedFrom && toText(before) === toText(after)) return [name];
  return [name, h("dd", {}, ...valuesOf(field, before, after, options))];
}

/** @param {string} field Such as `title`, `en.body`, `data.price`. */
export function fieldName(field) {
  const { name, locale } = splitField(field);
  return h("span", {}, h("code", {}, name), ...(locale ? [" ", h("span", { class: "tag" }, locale)] : []));
}

/** @param {string} field */
function splitField(field) {
  const dot = field.indexOf(".");
  if (dot < 0) return { name: field, locale: "" };
  const locale = field.slice(0, dot);
  return { name: field.slice(dot + 1), locale: locale === "data" ? "" : locale };
}

/** @param {any} value */
const isNothing = (value) => toText(value) === "";

/** @param {string} field @param {any} before @param {any} after @param {DifferenceOptions} options */
function valuesOf(field, before, after, { readLines, showLine }) {
  const read = (/** @type {any} */ value) => readLines?.(field, value) ?? toLines(value);
  let [old, now] = [read(before), read(after)];
  // what looks the same, such as 1 and "1", is shown as it is written
  if (old.join("\n") === now.join("\n"))
    [old, now] = [JSON.stringify(before), JSON.stringify(after)].map((text) => [text]);
  const show = showLine && ((/** @type {string} */ line) => showLine(field, line));
  if (old.length < 2 && now.length < 2) return pairOf(old, now, show);
  const { same, unchanged } = words.content.difference;
  const parts = compareLines(old, now).flatMap((part) => {
    if (!("same" in part)) return [h("div", { class: "changed-lines" }, ...pairOf(part.before, part.after, show))];
    const left = part.left ? [h("p", { class: "quiet-text" }, unchanged(part.left, formatCount(part.left)))] : [];
    const shown = part.same.map((line) => h("div", {}, show?.(line) ?? (line || " ")));
    const lines = shown.length
      ? [h("div", { class: "same-lines", dir: "auto", role: "group", "aria-label": same }, ...shown)]
      : [];
    return [...lines, ...left];
  });
  return [h("div", { class: "line-difference" }, ...parts)];
}

/** @param {string[]} old @param {string[]} now @param {((line: string) => Node | undefined) | undefined} show */
function pairOf(old, now, show) {
  const { before, after } = words.content.difference;
  const [was, is] = [old.join("\n"), now.join("\n")];
  const parts = compareWords(was, is);
  const side = (
    /** @type {"del" | "ins"} */ tag,
    /** @type {string} */ label,
    /** @type {string[]} */ lines,
    /** @type {TextPart[]} */ text,
  ) => {
    if (!lines.length) return [];
    const shown = lines.map((line) => show?.(line));
    const body = shown.some(Boolean) ? shown.map((node, index) => h("div", {}, node ?? lines[index])) : textOf(text);
    return [h(tag, { "aria-label": label, dir: "auto", ...scrolled(lines.join("\n")) }, ...body)];
  };
  return [...side("del", before, old, parts.before), ...side("ins", after, now, parts.after)];
}

/**
 * Let the keyboard reach a text that may have to be scrolled.
 *
 * @param {string} text
 */
export function scrolled(text) {
  return text.length > LONG || text.split("\n").length > MANY_LINES ? { tabIndex: 0 } : {};
}

/** @param {TextPart[]} parts */
function textOf(parts) {
  const isWhole = parts.every(({ isChanged }) => isChanged);
  return parts.map((part) => (part.isChanged && !isWhole ? h("b", {}, part.text) : part.text));
}
