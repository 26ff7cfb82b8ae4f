/** Show what differs between two versions, field by field. */

import { h } from "../dom.js";
import { words } from "../words/index.js";
import { toText } from "./content-difference.js";

/** @param {import("./content-difference.js").FieldDifference[]} differences */
export function differenceView(differences) {
  if (!differences.length) return h("p", { class: "quiet-text" }, words.content.difference.none);
  return h("dl", { class: "differences" }, ...differences.flatMap(rowsOf));
}

/** @param {import("./content-difference.js").FieldDifference} difference */
function rowsOf({ field, before, after }) {
  const { before: was, after: is } = words.content.difference;
  return [
    h("dt", {}, h("code", {}, field)),
    h("dd", {}, h("del", { "aria-label": was }, textOf(before)), h("ins", { "aria-label": is }, textOf(after))),
  ];
}

/** @param {any} value */
function textOf(value) {
  return toText(value) || h("i", {}, words.content.difference.absent);
}
