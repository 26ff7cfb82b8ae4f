/** Store changes of documents where they are reviewed: in the person's own change set that has the document, or in a new one. */

import { words } from "../words/index.js";

/** @import { ContentSpace, DocumentChange } from "@fermata/client/content" */

/** The service shows no more documents of a change set at once. */
const MOST_SHOWN = 100;
/** Characters of a name in the title of a change set, which may have 500. */
const MAX_NAMED = 400;

export class ReviewStore {
  /** Takes the next change, too. @type {any} */
  #changeSet;

  /** @param {Pick<ContentSpace, "changeSets">} content @param {string} model Of the documents. */
  constructor({ changeSets }, model) {
    this.changeSets = changeSets;
    this.model = model;
  }

  /**
   * Store a change. A change set that was begun for one that is refused is discarded.
   *
   * @param {string} id Of the document.
   * @param {DocumentChange} change
   * @param {string} name What the document is called, for the title of a new change set.
   * @returns {Promise<{changeSet: any, document: any}>} The document as it is in the change set.
   */
  async store(id, change, name) {
    const known = this.#changeSet ?? (await this.#find(id));
    const changeSet = known ?? (await this.#begin(name));
    this.#changeSet = changeSet;
    try {
      return { changeSet, document: await this.changeSets.change(changeSet.id, this.model, id, change) };
    } catch (error) {
      const { status } = /** @type {any} */ (error);
      const isEmpty = !known && status >= 400 && status < 500;
      if (isEmpty || status === 409) this.#changeSet = undefined; // 409: it was merged or discarded meanwhile
      if (isEmpty) await this.changeSets.discard(changeSet.id).catch(() => {}); // the service does it after 30 days
      throw error;
    }
  }

  /** @param {string} name */
  #begin(name) {
    return this.changeSets.begin({ title: words.content.review.title([...name].slice(0, MAX_NAMED).join("")) });
  }

  /** Find the person's newest open change set that has a document. @param {string} id */
  async #find(id) {
    const listed = await this.changeSets.list();
    const waiting = listed.filter(({ own, status, documents }) => own && status === "open" && documents);
    for (const one of waiting) if (await this.#holds(one.id, id)) return one;
    return undefined;
  }

  /** Say whether a change set has a document. In one that deletes it, a change would make another document of it. @param {string} changeSet @param {string} id */
  async #holds(changeSet, id) {
    /** @type {string | undefined} */
    let cursor;
    do {
      const wanted = { limit: MOST_SHOWN, model: this.model, ...(cursor && { cursor }) };
      const { documents, nextCursor } = await this.changeSets.page(changeSet, wanted);
      if (documents.some((one) => one.id === id && !one.deleted)) return true;
      cursor = nextCursor;
    } while (cursor);
    return false;
  }
}
