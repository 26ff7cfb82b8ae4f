/** The pages of a list: one is read and shown at a time, however many there are. */

import { h } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";
import { PagePlaces } from "./page-places.js";

/** @import { SpaceView } from "./space-page.js" */
/** @typedef {{documents: any[], total: number, nextCursor?: string}} DocumentPage */

const PAGE_SIZE = 50;

/**
 * @template {{nextCursor?: string}} Page
 */
export class ListPages {
  #places = new PagePlaces();

  /**
   * @param {(wanted: {limit: number, cursor?: string}) => Promise<Page>} read
   * @param {(page: Page) => number} count How many a page has.
   * @param {number} [size]
   */
  constructor(read, count, size = PAGE_SIZE) {
    this.readPage = read;
    this.count = count;
    this.size = size;
  }

  /** Begin with the first page again, such as after the filter has changed. */
  reset() {
    this.#places.reset();
  }

  /**
   * Read the page that is shown. If nothing is there any more, it is the one before.
   *
   * @returns {Promise<Page>}
   */
  async read() {
    for (;;) {
      const { cursor } = this.#places.shown;
      const page = await this.readPage({ limit: this.size, ...(cursor && { cursor }) });
      if (this.count(page) || this.#places.isFirst) return page;
      this.#places.goBack();
    }
  }

  /**
   * Make the buttons to the page before and after; nothing where all is on one page.
   *
   * @param {Page} page
   * @param {() => Promise<unknown>} load
   * @param {number} [total] Of what is listed, if it is known.
   */
  buttons(page, load, total) {
    const { nextCursor } = page;
    const { isFirst } = this.#places;
    if (!nextCursor && isFirst) return null;
    const { before, after, range, pages } = words.content.pages;
    const { first } = this.#places.shown;
    const shown = [first, first + this.count(page) - 1].map(formatCount);
    const button = (/** @type {string} */ text, /** @type {boolean} */ disabled, /** @type {() => void} */ move) => {
      const onclick = async () => {
        move();
        await load();
      };
      return h("button", { type: "button", class: "button", disabled, onclick }, text);
    };
    return h(
      "div",
      { class: "page-buttons", role: "group", "aria-label": pages },
      button(before, isFirst, () => this.#places.goBack()),
      h(
        "span",
        { class: "quiet-text", role: "status" },
        range(shown[0], shown[1], total === undefined ? "" : formatCount(total)),
      ),
      button(after, !nextCursor, () => this.#places.goOn(nextCursor, this.count(page))),
    );
  }
}

/**
 * The pages of the documents of a model.
 *
 * @param {SpaceView} view
 * @param {string} model
 * @param {() => import("@fermata/client/content").DocumentFilter} filter Returns what is listed now.
 * @param {number} [size]
 * @returns {ListPages<DocumentPage>}
 */
export function makeDocumentPages({ content, context }, model, filter, size) {
  return new ListPages(
    (wanted) => content.documents.list(model, { ...wanted, ...filter() }, { signal: context.signal }),
    ({ documents }) => documents.length,
    size,
  );
}
