/** Stands for the id of a document that is not stored yet. No id is like it. */
export const NEW_DOCUMENT = "-";
