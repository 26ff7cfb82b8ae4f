/** Receipts of one turn: in a store that all tabs share, and in this page's memory where the store fails. */

/** @import { Receipt, ReceiptStore } from "./types.js" */
import { wait } from "./backoff.js";
import { memoryReceipts } from "./receipts.js";

/** Milliseconds after which a store is taken to be stuck. */
const MAX_STORE_WAIT = 3000;

/**
 * Receipts in this page's memory and in a store. The store may fail or never answer: it is full, or forbidden in a private
 * window. That is reported once.
 */
export class FallbackReceipts {
  #memory = memoryReceipts();
  #store;
  #report;
  #isFailing = false;

  /**
   * @param {ReceiptStore} store
   * @param {(problem: Error) => void} report
   */
  constructor(store, report) {
    this.#store = store;
    this.#report = report;
  }

  /** @param {string} key */
  async get(key) {
    return (await this.#memory.get(key)) ?? (await this.#try(() => this.#store.get(key)));
  }

  /**
   * @param {string} key
   * @param {Receipt} receipt
   */
  async set(key, receipt) {
    await this.#memory.set(key, receipt);
    await this.#try(() => this.#store.set(key, receipt));
  }

  /**
   * @param {string} prefix
   * @param {number} olderThan
   */
  async clear(prefix, olderThan) {
    await this.#try(() => this.#store.clear(prefix, olderThan));
  }

  /**
   * @template T
   * @param {() => Promise<T>} operation
   * @returns {Promise<T | undefined>}
   */
  async #try(operation) {
    const late = new AbortController();
    const giveUp = async () => {
      await wait(MAX_STORE_WAIT, late.signal);
      this.#store = this.#memory;
      throw new Error("The store of receipts does not answer.");
    };
    try {
      return await Promise.race([operation(), giveUp()]);
    } catch (error) {
      if (!this.#isFailing) this.#report(/** @type {Error} */ (error));
      this.#isFailing = true;
      return undefined;
    } finally {
      late.abort();
    }
  }
}
