/** The rules of keys of the Conversation API. */

import { parseRights } from "./member-rights.js";

/**
 * Return the keys with which programs work in a space, those in use first.
 *
 * @param {any[]} keys
 * @param {string} space `site/environment`
 */
export function listKeysOfSpace(keys, space) {
  const own = keys.filter(({ conversation }) => conversation?.project === space);
  return [...own.filter(({ revokedAt }) => !revokedAt), ...own.filter(({ revokedAt }) => revokedAt)];
}

/**
 * Say to what a key is narrowed.
 *
 * @param {any} rules
 * @returns {string[]}
 */
export function describeRules({ models, locales, tools }) {
  return [models, locales, tools].flatMap((names) => (names?.length ? [names.join(", ")] : []));
}

/**
 * Read the rules of a new key from its form.
 *
 * @param {FormData} data
 * @param {string} space
 */
export function parseKeyRules(data, space) {
  const { rights } = parseRights(data);
  const instructions = String(data.get("instructions") ?? "").trim();
  return {
    project: space,
    ...rights,
    ...(instructions && { instructions }),
    messagesPerMinute: Number(data.get("perMinute")),
    messagesPerMonth: Number(data.get("perMonth")),
  };
}
