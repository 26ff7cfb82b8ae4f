/** How many older items are shown at once, so that showing them does not stop the page. */
const MAX_STEP = 400;

/** Which part of a list that grows is shown: its newest items, and older ones when somebody asks for them (decision 0302). */
export class NewestWindow {
  #size;
  #step;
  #first = 0;

  /** @param {number} size How many are shown at least; twice as many are at most. */
  constructor(size) {
    this.#size = size;
    this.#step = size;
  }

  /**
   * @param {number} length How many items there are now.
   * @returns {number} The place of the first one that is shown.
   */
  firstOf(length) {
    if (length < this.#first) this.#first = 0; // what was there is void
    // Many are hidden at once, so that what is shown seldom moves.
    if (length - this.#first > this.#size * 2) this.#first = length - this.#size;
    return this.#first;
  }

  /** Show older ones. They stay, however many follow. */
  showOlder() {
    const more = Math.min(this.#first, this.#step);
    this.#first -= more;
    this.#size += more;
    this.#step = Math.min(this.#step * 4, MAX_STEP); // hundreds are a few presses away
  }
}
