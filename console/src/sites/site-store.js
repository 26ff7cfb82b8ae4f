/** Sites, kept in this browser (IndexedDB): a GrapesJS project each. */

/** @typedef {{id: string, name: string, changedAt: number, project?: any, html?: string, conversationId?: string}} Site */

const DATABASE = "fermata-console";
const STORE = "sites";

/** @returns {Promise<IDBDatabase>} */
function openDatabase() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export class SiteStore {
  #database = openDatabase();

  /** @returns {Promise<Site[]>} The one that was changed last comes first. */
  async list() {
    /** @type {Site[]} */
    const sites = await this.#run("readonly", (store) => store.getAll());
    return sites.sort((one, other) => other.changedAt - one.changedAt);
  }

  /** @param {string} id @returns {Promise<Site | undefined>} */
  get(id) {
    return this.#run("readonly", (store) => store.get(id));
  }

  /** @param {Omit<Site, "id" | "changedAt">} content @returns {Promise<Site>} */
  async add(content) {
    const site = { ...content, id: crypto.randomUUID(), changedAt: Date.now() };
    await this.#run("readwrite", (store) => store.put(site));
    return site;
  }

  /**
   * Change members of a site. One that was deleted meanwhile, such as in another tab, stays deleted.
   *
   * @param {string} id
   * @param {Partial<Site>} change
   */
  async update(id, change) {
    const transaction = (await this.#database).transaction(STORE, "readwrite");
    const store = transaction.objectStore(STORE);
    const request = store.get(id);
    request.onsuccess = () => {
      if (request.result) store.put({ ...request.result, ...change, changedAt: Date.now() });
    };
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(Boolean(request.result));
      transaction.onerror = () => reject(transaction.error);
      transaction.onabort = () => reject(transaction.error);
    });
  }

  /** @param {string} id */
  remove(id) {
    return this.#run("readwrite", (store) => store.delete(id));
  }

  /**
   * @param {IDBTransactionMode} mode
   * @param {(store: IDBObjectStore) => IDBRequest} act
   * @returns {Promise<any>}
   */
  async #run(mode, act) {
    const request = act((await this.#database).transaction(STORE, mode).objectStore(STORE));
    return new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  }
}
