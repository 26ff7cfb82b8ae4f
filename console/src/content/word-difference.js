/** Which words of a text have changed. */

/** @typedef {{text: string, isChanged: boolean}} TextPart */

/** Longer texts are shown whole: comparing words costs the product of their numbers. */
const MAX_COMPARISONS = 250_000;
const WORD = /\s+|[^\s]+/gu;

/**
 * Return both texts in parts, of which those that the other one does not have are marked. All parts of a text are the text.
 *
 * @param {string} before
 * @param {string} after
 * @returns {{before: TextPart[], after: TextPart[]}}
 */
export function compareWords(before, after) {
  const [old, now] = [before.match(WORD) ?? [], after.match(WORD) ?? []];
  let start = 0;
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) start += 1;
  let end = 0;
  const most = Math.min(old.length, now.length) - start;
  while (end < most && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const [oldMiddle, nowMiddle] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  const kept = findKeptWords(oldMiddle, nowMiddle);
  const mark = (/** @type {string[]} */ words, /** @type {Set<number>} */ same) =>
    joinParts(words.map((text, index) => ({ text, isChanged: isMiddle(index, words) && !same.has(index - start) })));
  const isMiddle = (/** @type {number} */ index, /** @type {string[]} */ words) =>
    index >= start && index < words.length - end;
  return { before: mark(old, kept.old), after: mark(now, kept.now) };
}

/**
 * Find the longest list of words that both have in this order.
 *
 * @param {string[]} old
 * @param {string[]} now
 * @returns {{old: Set<number>, now: Set<number>}} Their indexes.
 */
function findKeptWords(old, now) {
  const kept = { old: /** @type {Set<number>} */ (new Set()), now: /** @type {Set<number>} */ (new Set()) };
  if (old.length * now.length > MAX_COMPARISONS) return kept;
  const width = now.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = now.length - 1; j >= 0; j -= 1)
      lengths[i * width + j] =
        old[i] === now[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
  for (let i = 0, j = 0; i < old.length && j < now.length; ) {
    if (old[i] === now[j]) {
      kept.old.add(i);
      kept.now.add(j);
      i += 1;
      j += 1;
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return kept;
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
