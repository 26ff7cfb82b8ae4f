/** Read the first pages of a list of documents, as many as are shown. */

/** @import { SpaceView } from "./space-page.js" */

/**
 * @param {SpaceView} view
 * @param {string} model
 * @param {import("@fermata/client/content").DocumentFilter} filter With the `limit` of a page.
 * @param {number} pages
 * @returns {Promise<{documents: any[], total: number, hasMore: boolean}>}
 */
export async function readPages({ content, context }, model, filter, pages) {
  /** @type {any[]} */
  const documents = [];
  /** @type {string | undefined} */
  let cursor;
  let total = 0;
  for (let page = 0; page < pages; page += 1) {
    const wanted = { ...filter, ...(cursor && { cursor }) };
    const read = await content.documents.list(model, wanted, { signal: context.signal });
    documents.push(...read.documents);
    ({ total, nextCursor: cursor } = read);
    if (!cursor) break;
  }
  return { documents, total, hasMore: Boolean(cursor) };
}
