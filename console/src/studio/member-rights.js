/** What a form says about the rights of a member. */

/** @typedef {{user: string, role: string, models?: string[], locales?: string[]}} SpaceMember */

/**
 * @param {FormData} data
 * @returns {{user: string, rights: {role: "viewer" | "reviewer" | "editor", models?: string[], locales?: string[]}}}
 */
export function parseRights(data) {
  const text = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
  const list = (/** @type {string} */ name) => [
    ...new Set(
      text(name)
        .split(/[\s,]+/)
        .filter(Boolean),
    ),
  ];
  const role = /** @type {"viewer" | "reviewer" | "editor"} */ (text("role"));
  const [models, locales] = [list("models"), list("locales")];
  // an empty list would mean none of them, and an empty field means all
  const only = { ...(models.length && { models }), ...(locales.length && { locales }) };
  return { user: text("user"), rights: { role, ...only } };
}
