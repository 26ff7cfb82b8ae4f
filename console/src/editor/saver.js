/**
 * Save a site a moment after each change, and show what other tabs have saved.
 *
 * While a person types, nothing is saved: reading the project would move the caret. When the page goes away, everything is.
 */

import { putSite } from "./make-editor.js";

/** @import { Site, SiteStore } from "../sites/site-store.js" */
/** @typedef {"saved" | "changed" | "full" | "deleted" | "failed" | "temporary"} SaveState */

const DELAY_MS = 600;
const EVENTS = "update undo redo rte:disable page:add page:remove page:update fermata:ids fermata:edit";

export class Saver {
  #timer = 0;
  /** How many changes GrapesJS has told of. It also tells of some, a moment after a site is loaded, that change nothing. */
  #changes = 0;
  #savedChanges = 0;
  #isClosed = false;
  /** The project that is stored, as JSON. */
  #stored;
  #channel = new BroadcastChannel("fermata-sites");

  /**
   * @param {any} editor
   * @param {SiteStore} store
   * @param {Site} site
   * @param {(state: SaveState) => void} onState
   */
  constructor(editor, store, site, onState) {
    this.editor = editor;
    this.store = store;
    this.siteId = site.id;
    this.onState = onState;
    this.#stored = site.project ? this.#read().text : "";
    editor.on(EVENTS, () => this.plan());
    editor.Css.getAll().on("add remove change", () => this.plan());
    this.#channel.onmessage = ({ data }) => this.#showOther(data.siteId);
    this.onHide = () => document.visibilityState === "hidden" && this.save();
    document.addEventListener("visibilitychange", this.onHide);
    this.onLeave = () => this.#flush();
    addEventListener("pagehide", this.onLeave);
    if (!store.isKept) onState("temporary");
  }

  plan() {
    if (this.#isClosed) return; // an editor that is destroyed tells of it, and has no project any more
    this.#changes += 1;
    this.onState("changed");
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.save(), DELAY_MS);
  }

  async save() {
    clearTimeout(this.#timer);
    if (!this.#isDirty || this.editor.getEditing()) return;
    const changes = this.#changes;
    const { project, text } = this.#read();
    try {
      const isThere = text === this.#stored || (await this.#store(project));
      if (isThere) this.#stored = text;
      this.#savedChanges = changes; // until here the page may go away, and has something to save
      if (!isThere) this.onState("deleted");
      else if (!this.#isDirty) this.onState(this.store.isKept ? "saved" : "temporary");
    } catch (error) {
      const { cause } = /** @type {Error} */ (error);
      this.onState(cause instanceof DOMException && cause.name === "QuotaExceededError" ? "full" : "failed");
    }
  }

  get #isDirty() {
    return this.#changes > this.#savedChanges;
  }

  #read() {
    const project = this.editor.getProjectData();
    return { project, text: JSON.stringify(project) };
  }

  /** @param {any} project */
  async #store(project) {
    const isThere = await this.store.update(this.siteId, { project });
    this.#channel.postMessage({ siteId: this.siteId });
    return isThere;
  }

  /**
   * Save while the page goes away. All steps follow each other at once: whatever waited for an event would not be done. GrapesJS
   * tells of a change a moment after it was made, so that the project itself is asked.
   */
  async #flush() {
    await this.editor.getEditing()?.view?.syncContent?.();
    const { project, text } = this.#read();
    const isChanged = text !== this.#stored;
    if (!isChanged && !this.store.isUpdating(this.siteId)) return;
    this.store.putAtOnce(this.siteId, isChanged ? { project } : {});
    this.#channel.postMessage({ siteId: this.siteId });
  }

  async close() {
    document.removeEventListener("visibilitychange", this.onHide);
    removeEventListener("pagehide", this.onLeave);
    await this.editor.getEditing()?.view?.disableEditing?.(); // whoever leaves with a key is still typing
    this.#isClosed = true;
    await this.save();
    this.#channel.close();
  }

  /**
   * Show what another tab has saved, unless this one has changes of its own.
   *
   * @param {string} siteId
   */
  async #showOther(siteId) {
    if (siteId !== this.siteId || this.#hasChanges()) return;
    const site = await this.store.get(siteId);
    if (!site?.project || this.#hasChanges()) return;
    putSite(this.editor, site);
    this.#stored = this.#read().text;
  }

  #hasChanges() {
    return Boolean(this.editor.getEditing()) || (this.#isDirty && this.#read().text !== this.#stored);
  }
}
