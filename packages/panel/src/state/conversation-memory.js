/** @import { SessionStore } from "./session-state.js" */

/** Keeps which conversation is open, where the browser keeps anything: its storage may be blocked or full. */
export class ConversationMemory {
  #storage;
  #key;
  #store;

  /**
   * @param {SessionStore} store
   * @param {Pick<Storage, "getItem" | "setItem" | "removeItem"> | null} storage
   * @param {string} key
   */
  constructor(store, storage, key) {
    this.#store = store;
    this.#storage = storage;
    this.#key = key;
  }

  /** @param {string | null} id */
  remember(id) {
    try {
      if (id === null) this.#storage?.removeItem(this.#key);
      else this.#storage?.setItem(this.#key, id);
    } catch (error) {
      this.#store.note(error);
    }
  }

  /** @returns {string | null} */
  recall() {
    try {
      return this.#storage?.getItem(this.#key) ?? null;
    } catch (error) {
      this.#store.note(error);
      return null;
    }
  }
}
