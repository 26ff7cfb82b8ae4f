/**
 * Save a site a moment after each change, and show what other tabs have saved.
 *
 * While a person types, nothing is saved: reading the project would move the caret. When the page goes away, everything is.
 */

import { putSite } from "./make-editor.js";

/** @import { SiteStore } from "../sites/site-store.js" */
/** @typedef {"saved" | "changed" | "full" | "deleted" | "failed" | "temporary"} SaveState */

const DELAY_MS = 600;
const EVENTS = "update undo redo rte:disable page:add page:remove page:update fermata:ids";

export class Saver {
  #timer = 0;
  #isDirty = false;
  #isLoading = false;
  #channel = new BroadcastChannel("fermata-sites");

  /**
   * @param {any} editor
   * @param {SiteStore} store
   * @param {string} siteId
   * @param {(state: SaveState) => void} onState
   */
  constructor(editor, store, siteId, onState) {
    this.editor = editor;
    this.store = store;
    this.siteId = siteId;
    this.onState = onState;
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
    if (this.#isLoading) return;
    this.#isDirty = true;
    this.onState("changed");
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.save(), DELAY_MS);
  }

  async save() {
    clearTimeout(this.#timer);
    if (!this.#isDirty || this.editor.getEditing()) return;
    this.#isDirty = false;
    try {
      const isThere = await this.store.update(this.siteId, { project: this.editor.getProjectData() });
      this.#channel.postMessage({ siteId: this.siteId });
      if (!isThere) this.onState("deleted");
      else if (!this.#isDirty) this.onState(this.store.isKept ? "saved" : "temporary");
    } catch (error) {
      this.#isDirty = true;
      const { cause } = /** @type {Error} */ (error);
      this.onState(cause instanceof DOMException && cause.name === "QuotaExceededError" ? "full" : "failed");
    }
  }

  /** Save while the page goes away. All steps follow each other at once: whatever waited for an event would not be done. */
  async #flush() {
    const editing = this.editor.getEditing();
    if (!editing && !this.#isDirty) return;
    await editing?.view?.syncContent?.();
    this.#isDirty = false;
    this.store.putAtOnce(this.siteId, { project: this.editor.getProjectData() });
  }

  async close() {
    document.removeEventListener("visibilitychange", this.onHide);
    removeEventListener("pagehide", this.onLeave);
    await this.save();
    clearTimeout(this.#timer);
    this.#channel.close();
  }

  /** @param {string} siteId */
  async #showOther(siteId) {
    if (siteId !== this.siteId || this.#isDirty || this.editor.getEditing()) return;
    const site = await this.store.get(siteId);
    if (!site?.project || this.#isDirty) return;
    this.#isLoading = true;
    putSite(this.editor, site);
    setTimeout(() => {
      this.#isLoading = false;
    }, 50); // GrapesJS reports the changes of a load after it
  }
}
