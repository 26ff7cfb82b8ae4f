/** Which words of a text have changed. */

import { findCommon } from "./longest-common.js";

/** @typedef {{text: string, isChanged: boolean}} TextPart */

/** A tag of a text with markup is a word of its own. */
const WORD = /<[^<>]*>|\s+|[^\s<]+|</gu;

/**
 * Return both texts in parts, of which those that the other one does not have are marked. All parts of a text are the text.
 *
 * @param {string} before
 * @param {string} after
 * @returns {{before: TextPart[], after: TextPart[]}}
 */
export function compareWords(before, after) {
  const [old, now] = [before.match(WORD) ?? [], after.match(WORD) ?? []];
  const common = findCommon(old, now);
  const mark = (/** @type {string[]} */ words, /** @type {Set<number>} */ same) =>
    joinParts(words.map((text, index) => ({ text, isChanged: !same.has(index) })));
  return {
    before: mark(old, new Set(common.map(([index]) => index))),
    after: mark(now, new Set(common.map(([, index]) => index))),
  };
}

/** @param {TextPart[]} parts @returns {TextPart[]} Neighbours of one kind are one part. */
function joinParts(parts) {
  /** @type {TextPart[]} */
  const joined = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (last?.isChanged === part.isChanged) last.text += part.text;
    else joined.push({ ...part });
  }
  return joined;
}
