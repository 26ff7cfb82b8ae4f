/** Sites, kept in this browser (IndexedDB): a GrapesJS project each. */

import { recall, recallKeys, remember } from "../storage.js";
import { words } from "../words/index.js";

/** @typedef {{id: string, name: string, changedAt: number, project?: any, html?: string, conversationId?: string}} Site */

const DATABASE = "fermata-console";
const STORE = "sites";
/** Before the id of a site: what a page changed of it when it went away. */
const LEFT = "fermata-left-site:";

/** @returns {Promise<IDBDatabase>} */
function openDatabase() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/**
 * Open the store. A browser that stores nothing for this page (as some do in private windows) gets one that forgets.
 *
 * @returns {Promise<SiteStore>}
 */
export async function openSiteStore() {
  try {
    return new SiteStore(await openDatabase());
  } catch {
    memory ??= new MemoryStore();
    return memory;
  }
}

/** The sites of a page that stores nothing, for as long as it is open. @type {MemoryStore | undefined} */
let memory;

export class SiteStore {
  /** Whether sites are here tomorrow too. */
  isKept = true;
  #database;
  /** What was read or stored last, by id. @type {Map<string, Site>} */
  #known = new Map();
  /** The ids of updates that are not stored yet. @type {string[]} */
  #updating = [];

  /** @param {IDBDatabase} database */
  constructor(database) {
    this.#database = database;
  }

  /** @returns {Promise<Site[]>} The one that was changed last comes first. */
  async list() {
    await this.#takeLeft();
    /** @type {Site[]} */
    const sites = await this.read((store) => store.getAll());
    return sites.sort((one, other) => other.changedAt - one.changedAt);
  }

  /** @param {string} id @returns {Promise<Site | undefined>} */
  async get(id) {
    await this.#takeLeft();
    /** @type {Site | undefined} */
    const site = await this.read((store) => store.get(id));
    if (site) this.#known.set(id, site);
    return site;
  }

  /** @param {Omit<Site, "id" | "changedAt">} content @returns {Promise<Site>} */
  async add(content) {
    const site = { ...content, id: crypto.randomUUID(), changedAt: Date.now() };
    await this.write((store) => store.put(site));
    this.#known.set(site.id, site);
    return site;
  }

  /**
   * Change members of a site. One that was deleted meanwhile, such as in another tab, stays deleted.
   *
   * @param {string} id
   * @param {Partial<Site>} change
   * @returns {Promise<boolean>} Whether the site is still there.
   */
  async update(id, change) {
    const known = this.#known.get(id);
    if (known) this.#known.set(id, { ...known, ...change, changedAt: nextInstant(known) });
    this.#updating.push(id);
    try {
      return await this.#update(id, change);
    } finally {
      this.#updating.splice(this.#updating.indexOf(id), 1);
    }
  }

  /** Whether a change of a site is not stored yet. @param {string} id */
  isUpdating(id) {
    return this.#updating.includes(id);
  }

  /** @param {string} id @param {Partial<Site>} change */
  async #update(id, change) {
    /** @type {Site | undefined} */
    let changed;
    await this.write((store) => {
      const request = store.get(id);
      request.onsuccess = () => {
        changed = request.result && { ...request.result, ...change, changedAt: nextInstant(request.result) };
        if (changed) store.put(changed);
      };
    });
    if (changed) this.#known.set(id, changed);
    else this.#known.delete(id);
    return Boolean(changed);
  }

  /**
   * Change members of a site while the page goes away, in one step: a page that is gone gets no answers. What another tab has
   * changed of this site since it was read last is lost.
   *
   * A browser takes a change back that the database has not stored when the page is gone, as a busy one has not
   * (decision 0650). So it is also left where it is kept at once; a site that is too large for that may lose it.
   *
   * @param {string} id
   * @param {Partial<Site>} change
   */
  putAtOnce(id, change) {
    const known = this.#known.get(id);
    if (!known) return;
    const site = { ...known, ...change, changedAt: nextInstant(known) };
    remember(`${LEFT}${id}`, JSON.stringify(site));
    const transaction = this.#database.transaction(STORE, "readwrite");
    transaction.objectStore(STORE).put(site);
    transaction.commit();
  }

  /** Store what pages have left, unless it was stored, or somebody changed or deleted the site afterwards. */
  async #takeLeft() {
    for (const key of recallKeys(LEFT)) {
      const text = recall(key);
      if (!text) continue; // another tab has just taken it
      const left = JSON.parse(text);
      const take = (/** @type {IDBObjectStore} */ store) => {
        const request = store.get(left.id);
        request.onsuccess = () => {
          if (request.result && request.result.changedAt <= left.changedAt) store.put(left);
        };
      };
      const isTaken = await this.write(take).then(
        () => true,
        () => false, // there is no room for it: it stays until there is
      );
      if (isTaken && recall(key) === text) remember(key, "");
    }
  }

  /** @param {string} id */
  remove(id) {
    return this.write((store) => store.delete(id));
  }

  /**
   * @param {(store: IDBObjectStore) => IDBRequest} act
   * @returns {Promise<any>}
   */
  read(act) {
    const request = act(this.#database.transaction(STORE).objectStore(STORE));
    return new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  }

  /**
   * Write, and wait until it is stored: whether there is room for it shows after its requests have succeeded.
   *
   * @param {(store: IDBObjectStore) => void} act
   * @returns {Promise<void>}
   */
  write(act) {
    return new Promise((resolve, reject) => {
      const transaction = this.#database.transaction(STORE, "readwrite");
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(inWords(transaction.error));
      act(transaction.objectStore(STORE));
    });
  }
}

/**
 * Return the instant of a change. It is later than that of the change before, also where the clock was set back.
 *
 * @param {Site} site
 */
function nextInstant({ changedAt }) {
  return Math.max(Date.now(), changedAt + 1);
}

/** @param {DOMException | null} error */
function inWords(error) {
  return error?.name === "QuotaExceededError" ? new Error(words.sites.noRoom, { cause: error }) : error;
}

/** The same without a database. */
class MemoryStore extends SiteStore {
  isKept = false;
  /** @type {Map<string, Site>} */
  #sites = new Map();

  constructor() {
    super(/** @type {any} */ (null));
  }

  async list() {
    return [...this.#sites.values()].sort((one, other) => other.changedAt - one.changedAt);
  }

  /** @param {string} id */
  async get(id) {
    return this.#sites.get(id);
  }

  /** @param {Omit<Site, "id" | "changedAt">} content */
  async add(content) {
    const site = { ...content, id: crypto.randomUUID(), changedAt: Date.now() };
    this.#sites.set(site.id, site);
    return site;
  }

  /** @param {string} id @param {Partial<Site>} change */
  async update(id, change) {
    const site = this.#sites.get(id);
    if (site) this.#sites.set(id, { ...site, ...change, changedAt: Date.now() });
    return Boolean(site);
  }

  /** A page that is gone has no memory. */
  putAtOnce() {}

  /** @param {string} id */
  async remove(id) {
    this.#sites.delete(id);
  }
}
