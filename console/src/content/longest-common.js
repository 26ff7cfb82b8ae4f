/** Find what two lists have in common, in its order. */

/** Comparing costs the product of their numbers. */
const MAX_COMPARISONS = 250_000;

/**
 * Find the longest list of texts that both have in this order. Of long lists, only what is the same at both ends is found.
 *
 * @param {string[]} old
 * @param {string[]} now
 * @returns {[number, number][]} The indexes of each in both.
 */
export function findCommon(old, now) {
  let start = 0;
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) start += 1;
  let end = 0;
  const most = Math.min(old.length, now.length) - start;
  while (end < most && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const middle = findInMiddle(old.slice(start, old.length - end), now.slice(start, now.length - end));
  return [
    ...Array.from({ length: start }, (_, index) => /** @type {[number, number]} */ ([index, index])),
    ...middle.map(([i, j]) => /** @type {[number, number]} */ ([i + start, j + start])),
    ...Array.from(
      { length: end },
      (_, index) => /** @type {[number, number]} */ ([old.length - end + index, now.length - end + index]),
    ),
  ];
}

/** @param {string[]} old @param {string[]} now @returns {[number, number][]} */
function findInMiddle(old, now) {
  if (old.length * now.length > MAX_COMPARISONS) return [];
  const width = now.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = now.length - 1; j >= 0; j -= 1)
      lengths[i * width + j] =
        old[i] === now[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
  /** @type {[number, number][]} */
  const common = [];
  for (let i = 0, j = 0; i < old.length && j < now.length; ) {
    if (old[i] === now[j]) {
      common.push([i, j]);
      i += 1;
      j += 1;
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return common;
}
