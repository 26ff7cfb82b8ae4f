/** What a person has open in the studio, as its assistant reads it. */

import { NEW_DOCUMENT } from "../content/new-document.js";

/** The panel of each part, by the names of the studio's protocol. */
const PANELS = /** @type {Record<string, string>} */ ({
  documents: "model",
  models: "model",
  "change-sets": "branch",
  submissions: "model",
});
const VOCABULARY_MODEL = "vocabulary";

/**
 * @typedef {object} OpenContext
 * @property {string} panelState
 * @property {string} [activeModelId]
 * @property {string} [activeEntryId]
 * @property {string} [activeLocale]
 * @property {string} [activeBranch]
 */

/**
 * Return what the address of a page says.
 *
 * @param {string} hash As in `#/studio/shop/main/documents/bread/rye/de`.
 * @returns {OpenContext | undefined} Nothing for a page that is not the studio's.
 */
export function readOpenContext(hash) {
  const [page, , , part = "", first, second, third] = hash.replace(/^#\//, "").split("/").map(decode);
  if (page !== "studio") return undefined;
  const panelState = part === "documents" && first === VOCABULARY_MODEL ? "vocabulary" : (PANELS[part] ?? "overview");
  if (part === "change-sets") return { panelState, ...(first && { activeBranch: `cr/${first}` }) };
  if (!PANELS[part] || !first) return { panelState };
  const isEntry = part === "documents" && second && second !== NEW_DOCUMENT;
  return {
    panelState,
    activeModelId: first,
    ...(isEntry && { activeEntryId: second }),
    ...(isEntry && third && { activeLocale: third }),
  };
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
