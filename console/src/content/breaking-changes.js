/** What a change of models may break, in words. */

import { words } from "../words/index.js";

/**
 * Say each change that the service has found.
 *
 * @param {string[]} changes Such as `kind` or `title: removed`.
 * @returns {string[]}
 */
export function sayBreakingChanges(changes) {
  const { kinds } = words.content.models.breaking;
  return changes.map((change) => {
    const end = change.lastIndexOf(": ");
    const kind = change.slice(end < 0 ? 0 : end + 2);
    const say = Object.hasOwn(kinds, kind) ? kinds[/** @type {keyof typeof kinds} */ (kind)] : () => change;
    return say(end < 0 ? "" : change.slice(0, end));
  });
}
