/** The pages of a list of documents: one is read and shown at a time, however many there are. */

import { h } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";

/** @import { SpaceView } from "./space-page.js" */
/** @typedef {{documents: any[], total: number, nextCursor?: string}} DocumentPage */

const PAGE_SIZE = 50;

export class DocumentPages {
  /** Where each page begins, up to the one that is shown. @type {(string | undefined)[]} */
  #cursors = [undefined];

  /** @param {SpaceView} view @param {string} model */
  constructor(view, model) {
    this.view = view;
    this.model = model;
  }

  /** Begin with the first page again, such as after the filter has changed. */
  reset() {
    this.#cursors = [undefined];
  }

  /**
   * Read the page that is shown. If nothing is there any more, it is the one before.
   *
   * @param {import("@fermata/client/content").DocumentFilter} [filter]
   * @returns {Promise<DocumentPage>}
   */
  async read(filter = {}) {
    const { content, context } = this.view;
    for (;;) {
      const cursor = this.#cursors.at(-1);
      const wanted = { limit: PAGE_SIZE, ...filter, ...(cursor && { cursor }) };
      const page = await content.documents.list(this.model, wanted, { signal: context.signal });
      if (page.documents.length || this.#cursors.length === 1) return page;
      this.#cursors.pop();
    }
  }

  /**
   * Make the buttons to the page before and after; nothing where all is on one page.
   *
   * @param {DocumentPage} page
   * @param {() => Promise<unknown>} load
   * @param {boolean} isFiltered Whether the total is that of more than what is listed.
   */
  buttons({ documents, total, nextCursor }, load, isFiltered) {
    if (!nextCursor && this.#cursors.length === 1) return null;
    const { before, after, range, pages } = words.content.pages;
    const first = (this.#cursors.length - 1) * PAGE_SIZE + 1;
    const shown = [first, first + documents.length - 1].map(formatCount);
    const go = async (/** @type {() => void} */ move) => {
      move();
      await load();
    };
    const button = (/** @type {string} */ text, /** @type {boolean} */ disabled, /** @type {() => void} */ move) =>
      h("button", { type: "button", class: "button", disabled, onclick: () => go(move) }, text);
    return h(
      "div",
      { class: "page-buttons", role: "group", "aria-label": pages },
      button(before, this.#cursors.length === 1, () => this.#cursors.pop()),
      h(
        "span",
        { class: "quiet-text", role: "status" },
        range(shown[0], shown[1], isFiltered ? "" : formatCount(total)),
      ),
      button(after, !nextCursor, () => this.#cursors.push(nextCursor)),
    );
  }
}
