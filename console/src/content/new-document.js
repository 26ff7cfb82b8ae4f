/** Stands for the id of a document that is not stored yet. No id is like it. */
export const NEW_DOCUMENT = "-";

/** The only document of a model of these kinds has this id. */
const SINGLE_ID = "main";
const SINGLE_KINDS = ["singleton", "dictionary"];

/**
 * Draw an id that no other document has. As with those of the service, later ones are greater: lists are in this order.
 *
 * @param {number} [now] In milliseconds.
 */
export function drawDocumentId(now = Date.now()) {
  const seconds = Math.floor(now / 1000).toString(16);
  return `${seconds.padStart(8, "0")}${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
}

/** Return the id that a new document of a model must have; undefined where any will do. @param {any} model */
export function findSingleId({ kind }) {
  return SINGLE_KINDS.includes(kind) ? SINGLE_ID : undefined;
}
