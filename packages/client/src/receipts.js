/** Stores of receipts: what was done for which effect, so that nothing is done twice. */

/** @import { Receipt, ReceiptStore } from "./types.js" */

const NAME = "fermata-receipts";

/**
 * Keep receipts in memory.
 *
 * @returns {ReceiptStore}
 */
export function memoryReceipts() {
  /** @type {Map<string, Receipt>} */
  const receipts = new Map();
  return {
    get: async (key) => receipts.get(key),
    set: async (key, receipt) => void receipts.set(key, receipt),
    async clear(prefix, olderThan) {
      for (const [key, { at }] of receipts) if (key.startsWith(prefix) || at < olderThan) receipts.delete(key);
    },
  };
}

/**
 * Keep receipts in `localStorage`, or in another `Storage`. It holds about 5 MB.
 *
 * @param {Storage} [storage]
 * @returns {ReceiptStore}
 */
export function storageReceipts(storage = globalThis.localStorage) {
  const full = (/** @type {string} */ key) => `${NAME}:${key}`;
  return {
    get: async (key) => parseReceipt(storage.getItem(full(key))),
    set: async (key, receipt) => storage.setItem(full(key), JSON.stringify(receipt)),
    async clear(prefix, olderThan) {
      const keys = Array.from(storage, (_, index) => storage.key(index) ?? "").filter((key) =>
        key.startsWith(full("")),
      );
      for (const key of keys) {
        const receipt = parseReceipt(storage.getItem(key));
        if (key.startsWith(full(prefix)) || !receipt || receipt.at < olderThan) storage.removeItem(key);
      }
    },
  };
}

/**
 * Keep receipts in the browser's IndexedDB, which all tabs of an origin share.
 *
 * @param {IDBFactory} [factory]
 * @returns {ReceiptStore}
 */
export function indexedDbReceipts(factory = globalThis.indexedDB) {
  /** @type {Promise<IDBDatabase> | undefined} */
  let database;
  const forget = () => {
    database = undefined;
  };
  /** @param {IDBTransactionMode} mode */
  const open = async (mode) => {
    database ??= openDatabase(factory, forget);
    try {
      return (await database).transaction(NAME, mode).objectStore(NAME);
    } catch (error) {
      forget(); // it may open the next time, such as after a person has deleted what the site had stored
      throw error;
    }
  };
  return {
    get: async (key) => resultOf((await open("readonly")).get(key)),
    // Until its transaction is complete, a tab that is closed takes a receipt back.
    set: async (key, receipt) => resultOf((await open("readwrite")).put(receipt, key).transaction),
    async clear(prefix, olderThan) {
      const cursorRequest = (await open("readwrite")).openCursor();
      cursorRequest.onsuccess = () => {
        const cursor = cursorRequest.result;
        if (!cursor) return;
        if (String(cursor.key).startsWith(prefix) || cursor.value.at < olderThan) cursor.delete();
        cursor.continue();
      };
      await resultOf(cursorRequest.transaction);
    },
  };
}

/**
 * Choose the store of this environment.
 *
 * @returns {ReceiptStore}
 */
export function defaultReceipts() {
  return globalThis.indexedDB ? indexedDbReceipts() : memoryReceipts();
}

/**
 * @param {IDBFactory} factory
 * @param {() => void} onClose
 */
function openDatabase(factory, onClose) {
  const request = factory.open(NAME, 1);
  request.onupgradeneeded = () => void request.result.createObjectStore(NAME);
  return resultOf(request).then((database) => {
    database.onclose = onClose;
    database.onversionchange = () => {
      database.close();
      onClose();
    };
    return database;
  });
}

/**
 * @param {string | null} text
 * @returns {Receipt | undefined} Nothing where something else is stored.
 */
function parseReceipt(text) {
  try {
    const value = JSON.parse(text ?? "null");
    return typeof value?.call === "string" && typeof value.at === "number" ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {any} it A request, or a transaction.
 * @returns {Promise<any>} Its result, once it has succeeded, or is complete.
 */
function resultOf(it) {
  return new Promise((resolve, reject) => {
    it.onsuccess = it.oncomplete = () => resolve(it.result);
    it.onerror = it.onabort = (/** @type {any} */ { target }) => reject(target.error);
  });
}
