/** Make each tool call one step of the editor's own undo. */

import { ToolError } from "../tool-error.js";
import { kindOf } from "./operations.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("./edit.js").Edit} Edit */
/** @typedef {{items: any[], settings: Edit["settings"], isUndone: boolean}} Step */

const MAX_STEPS = 500;

/**
 * Makes each tool call one step of the editor's own undo, and completes what GrapesJS undoes in part only: ids, members
 * that are set for the first time, addresses of images, code (decision 0274).
 */
export class UndoSteps {
  /** @param {EditorDocument} document */
  constructor(document) {
    this.document = document;
    this.stack = document.editor.UndoManager.getStack();
    this.nextGroup = -2;
    /** @type {Step[]} */
    this.steps = [];
    document.editor.on("undo redo", () => this.#complete());
  }

  /**
   * Run a function whose changes are one step. If it throws, it has taken its changes back, and there is no step.
   * @template T
   * @param {() => T} change
   * @returns {{result: T, items: any[]}}
   */
  record(change) {
    const last = this.stack.at(this.stack.pointer);
    try {
      const result = change();
      const items = this.#itemsAfter(last);
      const group = this.nextGroup--;
      for (const item of items) item.set("magicFusionIndex", group);
      return { result, items };
    } catch (error) {
      const items = this.#itemsAfter(last);
      this.stack.remove(items);
      this.stack.pointer -= items.length;
      throw error;
    }
  }

  /** @param {any} last undefined for the beginning */
  #itemsAfter(last) {
    return this.stack.models.slice(last ? this.stack.models.indexOf(last) + 1 : 0, this.stack.pointer + 1);
  }

  /**
   * Remember what a step has set.
   * @param {any[]} items
   * @param {Edit["settings"]} settings
   */
  remember(items, settings) {
    if (!items.length || !settings.length) return;
    this.steps.push({ items, settings, isUndone: false });
    this.steps = this.steps.slice(-MAX_STEPS);
  }

  /** Set again what an undo or a redo has left. */
  #complete() {
    const { editor, ids, rules } = this.document;
    editor.UndoManager.skip(() => ids.restoreNumbered((id) => rules.matching([`#${id}`]).length > 0));
    this.steps = this.steps.filter(({ items }) => this.stack.models.includes(items[0]));
    const changed = this.steps.filter((step) => this.#isUndone(step) !== step.isUndone);
    for (const step of changed) {
      step.isUndone = !step.isUndone;
      const operations = step.isUndone
        ? step.settings.toReversed().flatMap(({ inverse }) => inverse)
        : step.settings.map(({ operation }) => operation);
      editor.UndoManager.skip(() => {
        for (const operation of operations) this.#applyAgain(operation);
      });
    }
  }

  /** @param {Step} step */
  #isUndone({ items }) {
    return this.stack.models.indexOf(items[0]) > this.stack.pointer;
  }

  /** @param {import("./operations.js").Operation} operation */
  #applyAgain(operation) {
    try {
      kindOf(operation).apply(this.document, operation);
    } catch (error) {
      // the node is gone with an older step that was undone as well
      if (!(error instanceof ToolError)) throw error;
    }
  }
}
