/** Where the pages of a list begin, up to the one that is shown. A page may have fewer than were asked for. */

/** @typedef {{cursor?: string, first: number}} PagePlace `first` counts from 1. */

export class PagePlaces {
  /** @type {PagePlace[]} */
  #places = [{ first: 1 }];

  get isFirst() {
    return this.#places.length === 1;
  }

  /** @returns {PagePlace} */
  get shown() {
    return /** @type {PagePlace} */ (this.#places.at(-1));
  }

  /** @param {string | undefined} cursor Of the next page. @param {number} count How many are on this one. */
  goOn(cursor, count) {
    this.#places.push({ cursor, first: this.shown.first + count });
  }

  goBack() {
    this.#places.pop();
  }

  reset() {
    this.#places = [{ first: 1 }];
  }
}
