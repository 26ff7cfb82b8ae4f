/** Show what differs between two versions, field by field. */

import { h } from "../dom.js";
import { words } from "../words/index.js";
import { toText } from "./content-difference.js";
import { compareWords } from "./word-difference.js";

/** What fits into its place without scrolling. */
const [LONG, MANY_LINES] = [200, 5];

/** @import { TextPart } from "./word-difference.js" */

/** @param {import("./content-difference.js").FieldDifference[]} differences */
export function differenceView(differences) {
  if (!differences.length) return h("p", { class: "quiet-text" }, words.content.difference.none);
  return h("dl", { class: "differences" }, ...differences.flatMap(rowsOf));
}

/** @param {import("./content-difference.js").FieldDifference} difference */
function rowsOf({ field, before, after }) {
  const { before: was, after: is } = words.content.difference;
  const [old, now] = [toText(before), toText(after)];
  const parts = compareWords(old, now);
  return [
    h("dt", {}, h("code", {}, field)),
    h(
      "dd",
      {},
      h("del", { "aria-label": was, dir: "auto", ...scrolled(old) }, ...textOf(old, parts.before)),
      h("ins", { "aria-label": is, dir: "auto", ...scrolled(now) }, ...textOf(now, parts.after)),
    ),
  ];
}

/**
 * Let the keyboard reach a text that may have to be scrolled.
 *
 * @param {string} text
 */
export function scrolled(text) {
  return text.length > LONG || text.split("\n").length > MANY_LINES ? { tabIndex: 0 } : {};
}

/** @param {string} text @param {TextPart[]} parts */
function textOf(text, parts) {
  if (!text) return [h("i", {}, words.content.difference.absent)];
  const isWhole = parts.every(({ isChanged }) => isChanged);
  return parts.map((part) => (part.isChanged && !isWhole ? h("b", {}, part.text) : part.text));
}
