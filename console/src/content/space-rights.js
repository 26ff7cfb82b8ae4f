/** What a person may do in a space, and the words about what is left to others. */

import { emptyView, h } from "../dom.js";
import { words } from "../words/index.js";

/** @typedef {"read" | "write" | "review" | "manage" | "keys" | "plan"} SpaceRight */

/**
 * Say what a person may do here, if that is not everything.
 *
 * @param {Set<SpaceRight>} may
 * @returns {string} Nothing for who manages content.
 */
export function sayRights(may) {
  const { viewer, reviewer, editor, editorAndReviewer } = words.content.rights;
  if (may.has("manage")) return "";
  if (may.has("write")) return may.has("review") ? editorAndReviewer : editor;
  return may.has("review") ? reviewer : viewer;
}

/**
 * Say why a space is closed for a person who is not on its list of members, or works on a part of it only.
 *
 * @param {any} member The row of the list; undefined without one.
 */
export function closedSpaceView(member) {
  const { closed, notListed, partOnly, models, locales } = words.content.rights;
  if (!member) return emptyView(closed, notListed);
  const parts = [
    member.models && models(member.models.join(", ")),
    member.locales && locales(member.locales.join(", ")),
  ];
  return emptyView(closed, [partOnly, ...parts.filter(Boolean)].join(" "));
}

/** Say that a part of a space is for others. @param {"write" | "manage" | "keys" | "plan"} needed */
export function closedPartView(needed) {
  const { closedPart, needs } = words.content.rights;
  return emptyView(closedPart, needs[needed]);
}

/** @param {string} text */
export function note(text) {
  return h("p", { class: "quiet-text rights-note" }, text);
}
