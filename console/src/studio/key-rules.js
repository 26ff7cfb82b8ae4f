/** The rules of keys of the Conversation API. */

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
 * Read the rules of a key from its form. What is left empty narrows nothing.
 *
 * @param {FormData} data
 */
export function parseKeyRules(data) {
  const text = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
  const names = (/** @type {string} */ name) => [...new Set(text(name).split(/[\s,]+/))].filter(Boolean);
  const list = (/** @type {string} */ name) => (names(name).length ? names(name) : null);
  return {
    role: text("role"),
    models: list("models"),
    locales: list("locales"),
    tools: list("tools"),
    instructions: text("instructions"),
    modelId: text("modelId") || null,
    messagesPerMinute: Number(data.get("perMinute")),
    messagesPerMonth: Number(data.get("perMonth")),
  };
}
