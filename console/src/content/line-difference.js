/** Which lines of a value have changed, with a few lines around them. */

import { findCommon } from "./longest-common.js";

/**
 * @typedef {{before: string[], after: string[]}} ChangedLines Lines of which one side may have none.
 * @typedef {{same: string[], left: number}} SameLines `left` counts what is left out of them in the middle, or at their end.
 */

/** Lines around what has changed that are shown. */
const AROUND = 1;

/**
 * Return the parts of two lists of lines in their order.
 *
 * @param {string[]} before
 * @param {string[]} after
 * @returns {(ChangedLines | SameLines)[]}
 */
export function compareLines(before, after) {
  /** @type {(ChangedLines | SameLines)[]} */
  const parts = [];
  let [old, now] = [0, 0];
  /** @type {string[]} */
  let same = [];
  const endSame = (/** @type {boolean} */ isLast) => {
    if (same.length) parts.push(...shorten(same, parts.length > 0, !isLast));
    same = [];
  };
  for (const [i, j] of [...findCommon(before, after), [before.length, after.length]]) {
    if (i > old || j > now) {
      endSame(false);
      parts.push({ before: before.slice(old, i), after: after.slice(now, j) });
    }
    if (i < before.length) same.push(before[i]);
    [old, now] = [i + 1, j + 1];
  }
  endSame(true);
  return parts;
}

/**
 * Leave out of lines that are the same what is not beside a change.
 *
 * @param {string[]} lines
 * @param {boolean} isBehind Whether a change is before them.
 * @param {boolean} isBefore Whether a change follows.
 * @returns {SameLines[]}
 */
function shorten(lines, isBehind, isBefore) {
  const [first, last] = [isBehind ? AROUND : 0, isBefore ? AROUND : 0];
  const left = lines.length - first - last;
  if (left <= 1) return [{ same: lines, left: 0 }]; // saying so would take as much room
  const parts = [
    { same: lines.slice(0, first), left },
    { same: last ? lines.slice(-last) : [], left: 0 },
  ];
  return parts.filter((part) => part.same.length || part.left);
}
