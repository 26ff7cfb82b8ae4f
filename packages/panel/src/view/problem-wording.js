/** What the service says, in the reader's language: by the code of what happened, where the panel has words for it. */

/** @import { Problem } from "../state/session-state.js" */
/** @import { Messages } from "../messages.js" */
import { h } from "./dom.js";

/**
 * @param {string} message The service's words.
 * @param {string | undefined} code
 * @param {Messages} words
 */
export function inReadersLanguage(message, code, words) {
  return (code && Object.hasOwn(words.service, code) && words.service[code]) || message;
}

/**
 * The paragraphs that tell a problem: what it is and what to do. The service's own words follow those of another language,
 * because they may name what the panel does not know.
 *
 * @param {Problem} problem
 * @param {Messages} words
 * @returns {HTMLElement[]}
 */
export function problemWords({ message, hint, code, status }, words) {
  const keys = [code, `status${status}`, status >= 500 ? "status500" : ""];
  const own = keys.find((key) => key && Object.hasOwn(words.service, key));
  if (own === undefined) {
    const isNew = hint && !message.includes(hint);
    return [h("p", { dir: "auto" }, message), ...(isNew ? [h("p", { class: "hint" }, hint)] : [])];
  }
  return [h("p", {}, words.service[own]), h("p", { class: "hint", lang: "en", dir: "auto" }, message)];
}
