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
    get: async (key) => JSON.parse(storage.getItem(full(key)) ?? "null") ?? undefined,
    set: async (key, receipt) => storage.setItem(full(key), JSON.stringify(receipt)),
    async clear(prefix, olderThan) {
      const keys = Array.from(storage, (_, index) => storage.key(index) ?? "").filter((key) =>
        key.startsWith(full("")),
      );
      for (const key of keys) {
        const { at } = JSON.parse(storage.getItem(key) ?? "null") ?? {};
        if (key.startsWith(full(prefix)) || !(at >= olderThan)) storage.removeItem(key);
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
  /** @param {IDBTransactionMode} mode */
  const open = async (mode) => {
    database ??= openDatabase(factory).catch((error) => {
      database = undefined;
      throw error;
    });
    return (await database).transaction(NAME, mode).objectStore(NAME);
  };
  return {
    get: async (key) => resultOf((await open("readonly")).get(key)),
    set: async (key, receipt) => void (await resultOf((await open("readwrite")).put(receipt, key))),
    async clear(prefix, olderThan) {
      const cursorRequest = (await open("readwrite")).openCursor();
      await new Promise((resolve, reject) => {
        cursorRequest.onerror = () => reject(cursorRequest.error);
        cursorRequest.onsuccess = () => {
          const cursor = cursorRequest.result;
          if (!cursor) return resolve(undefined);
          if (String(cursor.key).startsWith(prefix) || cursor.value.at < olderThan) cursor.delete();
          cursor.continue();
        };
      });
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

/** @param {IDBFactory} factory */
function openDatabase(factory) {
  const request = factory.open(NAME, 1);
  request.onupgradeneeded = () => void request.result.createObjectStore(NAME);
  return resultOf(request).then((database) => {
    database.onversionchange = () => database.close();
    return database;
  });
}

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function resultOf(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
