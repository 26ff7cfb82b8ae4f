/** Protect what a person types: it is in the page only, not in the editor's model, until the editing ends. */

import { ConflictError, refuse } from "../tool-error.js";
import { isWithin, textOf } from "./component-tree.js";

/** @typedef {import("./component-tree.js").Component} Component */

/** Protects what a person types: it is in the page only, not in the editor's model, until the editing ends. */
export class Typing {
  /** @param {any} editor */
  constructor(editor) {
    this.editor = editor;
    /** @type {boolean | undefined} */
    this.savedAutosave = undefined;
    editor.on("rte:enable", () => this.#pauseSaving());
    // the typed text comes into the model right after this event
    editor.on("rte:disable", () => setTimeout(() => this.#resumeSaving(), 0));
  }

  /** @returns {Component | undefined} what is edited now */
  get component() {
    return this.editor.getEditing() || undefined;
  }

  /**
   * Return the text that is typed into a component; undefined if it is the model's.
   * @param {Component} component
   * @returns {string | undefined}
   */
  textIn(component) {
    if (component !== this.component) return undefined;
    const typed = component.getEl()?.textContent;
    return typed === undefined || typed === null || typed === textOf(component) ? undefined : typed;
  }

  /**
   * Raise a conflict if a change of a component would end the typing.
   * @param {Component} target
   * @param {{wholeSubtree: boolean}} scope whether everything in the target is removed, moved or replaced
   */
  protect(target, { wholeSubtree }) {
    const editing = this.component;
    if (!editing) return;
    if (isWithin(editing, target) || (wholeSubtree && isWithin(target, editing))) {
      const text = (editing.getEl()?.textContent ?? "").trim().slice(0, 300);
      throw new ConflictError(
        "The user is writing in this element. Their text was kept, and nothing was changed. Work on something else, " +
          "or read the document again later.",
        `The user is writing: ${text}`,
      );
    }
  }

  /** Refuse to show another page while somebody writes on this one. */
  protectPage() {
    if (this.component) refuse("The user is writing on the open page. It stays open until they have finished.");
  }

  /** Saving reads the model, which takes the typed text into it and throws the caret to the start. */
  #pauseSaving() {
    if (this.savedAutosave !== undefined) return;
    this.savedAutosave = this.editor.Storage.isAutosave();
    this.editor.Storage.setAutosave(false);
  }

  #resumeSaving() {
    if (this.savedAutosave === undefined || this.component) return;
    const { Storage } = this.editor;
    Storage.setAutosave(this.savedAutosave);
    this.savedAutosave = undefined;
    const isDue = this.editor.getDirtyCount() >= Storage.getStepsBeforeSave();
    if (Storage.isAutosave() && Storage.getCurrentStorage?.() && isDue) this.editor.store().catch(() => undefined);
  }
}
