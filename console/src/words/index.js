/** The words of the console in the language that the browser prefers, of those that there are. English is the last resort. */

import { DE } from "./de.js";
import { EN } from "./en.js";

/** @typedef {typeof EN} Words */

/** @type {Record<string, Words>} */
export const WORDS = { en: EN, de: DE };

/**
 * Choose a language: the first that a person prefers and that there are words for.
 *
 * @param {readonly string[]} preferred Language tags, such as `de-AT`.
 * @returns {{tag: string, name: string}} The tag, by which numbers and dates are written, and the name of the words.
 */
export function chooseLanguage(preferred) {
  for (const tag of preferred) {
    const name = tag.toLowerCase().split(/[-_]/)[0];
    if (Object.hasOwn(WORDS, name)) return { tag, name };
  }
  return { tag: "en", name: "en" };
}

const chosen = chooseLanguage(globalThis.navigator?.languages ?? []);

/** The language tag that numbers and dates are written by. */
export const LANGUAGE = chosen.tag;
/** `en` or `de`. */
export const LANGUAGE_NAME = chosen.name;
export const words = WORDS[chosen.name];
