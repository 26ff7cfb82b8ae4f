/** Execute the browser tools of a site on the document of a GrapesJS editor. */

import { EditorDocument } from "./document.js";
import { buildSnapshot } from "./snapshot.js";
import { KnownStates } from "./state/conflicts.js";
import { applyPatch, Edit } from "./state/edit.js";
import { UndoSteps } from "./state/undo-steps.js";
import { ConflictError, ToolError } from "./tool-error.js";
import { CANVAS_TOOLS, READ_TOOLS, RESTORE_TOOL, TOOL_NAMES, unprefixedName, WRITE_TOOLS } from "./tools/registry.js";

/** @typedef {import("./state/document-state.js").DocumentState} DocumentState */
/** @typedef {import("./state/edit.js").Patch} Patch */
/**
 * A request to carry out a tool.
 * @typedef {object} ToolRequest
 * @property {string} toolName
 * @property {Record<string, any>} [input]
 * @property {string} [effectKey] the same key has one effect, and the same result again
 * @property {string} [revision] on which the call was planned
 */
/**
 * @typedef {object} ToolOutput
 * @property {boolean} ok
 * @property {object} [data]
 * @property {string} [error]
 * @property {boolean} [conflict]
 * @property {string} [changes]
 * @property {string} revision
 * @property {{tool: string, input: {patch: Patch}}[]} [inverse]
 * @property {{mimeType: string, data: string}[]} [images]
 */
/** @typedef {{undone: string[], skipped: {effectKey: string, reason: string}[]}} UndoReport */

const MAX_RESULTS = 300;
/** How many turns `undoTurn` can take back. The service takes back any. */
const MAX_TURNS = 50;

/** Executes a site's browser tools on the document of a GrapesJS editor. */
export class GrapesExecutor {
  /**
   * @param {any} editor
   * @param {{runScripts?: boolean}} [options] `runScripts` lets the canvas run scripts that a model has written
   */
  constructor(editor, { runScripts = false } = {}) {
    this.editor = editor;
    this.document = new EditorDocument(editor, { runScripts });
    this.known = new KnownStates();
    this.steps = new UndoSteps(this.document);
    /** @type {Map<string, Promise<ToolOutput>>} */
    this.results = new Map();
    /** @type {Map<string, {effectKey: string, patch: Patch}[]>} */
    this.edits = new Map();
    /** @type {Promise<unknown>} */
    this.queue = Promise.resolve();
    this.tools = TOOL_NAMES;
  }

  /**
   * Carry out a tool request. Requests are carried out one after another.
   * @param {ToolRequest} request
   * @returns {Promise<ToolOutput>}
   */
  execute(request) {
    const { effectKey } = request;
    const known = effectKey ? this.results.get(effectKey) : undefined;
    if (known) return known;
    const result = this.queue.then(() => this.#execute(request));
    this.queue = result;
    if (effectKey) {
      this.results.set(effectKey, result);
      if (this.results.size > MAX_RESULTS)
        this.results.delete(/** @type {string} */ (this.results.keys().next().value));
    }
    return result;
  }

  /** Return what is sent with prompts and results. */
  async snapshot() {
    const state = this.document.reader.read();
    this.known.add(state);
    return { snapshot: buildSnapshot(this.document), revision: state.revision };
  }

  /** The hash of all content. It is the old one again after an undo. */
  revision() {
    return this.document.reader.read().revision;
  }

  /**
   * Take back all edits of a turn, the newest first, as one step of the editor's undo.
   * @param {string} [turnId] the last turn without it
   * @returns {Promise<UndoReport>}
   */
  undoTurn(turnId = [...this.edits.keys()].at(-1)) {
    const result = this.queue.then(() => this.#undoTurn(turnId ?? ""));
    this.queue = result;
    return result;
  }

  /**
   * @param {ToolRequest} request
   * @returns {Promise<ToolOutput>}
   */
  async #execute(request) {
    const name = unprefixedName(request.toolName);
    const input = request.input ?? {};
    try {
      if (Object.hasOwn(CANVAS_TOOLS, name)) return await this.#renderCanvas(input);
      if (Object.hasOwn(READ_TOOLS, name)) return this.#read(name, input);
      if (name === RESTORE_TOOL) return this.#restore(request, input);
      if (Object.hasOwn(WRITE_TOOLS, name)) return this.#write(request, name, input);
      throw new ToolError(`This editor cannot carry out ${request.toolName}.`);
    } catch (error) {
      return this.#failure(error);
    }
  }

  /**
   * @param {Record<string, any>} input
   * @returns {Promise<ToolOutput>}
   */
  async #renderCanvas(input) {
    const { data, images } = await CANVAS_TOOLS.render_snapshot(this.document, input);
    return { ...this.#success(data), ...(images ? { images } : {}) };
  }

  /**
   * @param {string} name
   * @param {Record<string, any>} input
   */
  #read(name, input) {
    return this.#success(READ_TOOLS[name](this.document, input));
  }

  /**
   * @param {ToolRequest} request
   * @param {string} name
   * @param {Record<string, any>} input
   */
  #write(request, name, input) {
    const tool = WRITE_TOOLS[name];
    const before = this.document.reader.read();
    const touches = tool.touches(this.document, input);
    const planned = this.known.check(this.document, before, request.revision, touches);
    return this.#edit(request, before, planned, (edit) => tool.run(this.document, input, edit));
  }

  /**
   * @param {ToolRequest} request
   * @param {Record<string, any>} input
   */
  #restore(request, input) {
    const before = this.document.reader.read();
    const isDone = input.patch?.was === before.revision;
    return this.#edit(request, before, before, (edit) => {
      // it was restored before; the result was lost and the request came again
      if (!isDone) applyPatch(edit, input.patch);
      return undefined;
    });
  }

  /**
   * @param {ToolRequest} request
   * @param {DocumentState} before
   * @param {DocumentState} planned on which the call was planned
   * @param {(edit: Edit) => object | undefined} change
   * @returns {ToolOutput}
   */
  #edit(request, before, planned, change) {
    const edit = new Edit(this.document, before);
    const { result: data, items } = this.steps.record(() => {
      try {
        return change(edit);
      } catch (error) {
        edit.rollBack();
        throw error;
      }
    });
    this.steps.remember(items, edit.settings);
    const after = this.document.reader.read();
    const patch = after.revision === before.revision ? null : edit.patch(after);
    const revision = this.known.addEdited(planned, before, after);
    if (patch) {
      this.#remember(request, patch);
      // GrapesJS does not count new and removed rules as changes to be saved
      this.editor.getModel().changesUp?.({}, { fermata: request.toolName });
      this.editor.trigger("fermata:edit", { toolName: request.toolName, effectKey: request.effectKey });
    }
    const inverse = patch ? { inverse: [{ tool: RESTORE_TOOL, input: { patch } }] } : {};
    return { ok: true, ...(data ? { data } : {}), revision, ...inverse };
  }

  /**
   * @param {ToolRequest} request
   * @param {Patch} patch
   */
  #remember({ effectKey }, patch) {
    if (!effectKey) return;
    const turnId = effectKey.split("/")[0];
    const edits = this.edits.get(turnId) ?? [];
    this.edits.delete(turnId);
    this.edits.set(turnId, [...edits, { effectKey, patch }]);
    if (this.edits.size > MAX_TURNS) this.edits.delete(/** @type {string} */ (this.edits.keys().next().value));
  }

  /**
   * @param {string} turnId
   * @returns {UndoReport}
   */
  #undoTurn(turnId) {
    const edits = this.edits.get(turnId) ?? [];
    /** @type {UndoReport} */
    const report = { undone: [], skipped: [] };
    /** @type {Edit["settings"]} */
    const settings = [];
    const { items } = this.steps.record(() => {
      for (const { effectKey, patch } of edits.toReversed()) {
        const edit = new Edit(this.document, this.document.reader.read());
        try {
          applyPatch(edit, patch);
          settings.push(...edit.settings);
          report.undone.push(effectKey);
        } catch (error) {
          edit.rollBack();
          if (!(error instanceof ToolError)) throw error;
          report.skipped.push({ effectKey, reason: error.message });
        }
      }
    });
    this.steps.remember(items, settings);
    if (items.length) this.editor.getModel().changesUp?.({}, { fermata: "undo" });
    const skipped = new Set(report.skipped.map(({ effectKey }) => effectKey));
    this.edits.set(
      turnId,
      edits.filter(({ effectKey }) => skipped.has(effectKey)),
    );
    if (!skipped.size) this.edits.delete(turnId);
    return report;
  }

  /**
   * @param {object} data
   * @returns {ToolOutput}
   */
  #success(data) {
    const state = this.document.reader.read();
    this.known.add(state);
    return { ok: true, data, revision: state.revision };
  }

  /**
   * @param {unknown} error
   * @returns {ToolOutput}
   */
  #failure(error) {
    const state = this.document.reader.read();
    const { revision } = state;
    if (error instanceof ConflictError) {
      if (!this.known.states.has(revision)) this.known.add(state);
      const changes = error.changes ? { changes: error.changes } : {};
      return { ok: false, conflict: true, error: error.message, ...changes, revision };
    }
    if (error instanceof ToolError) return { ok: false, error: error.message, revision };
    this.editor.log(String(error), { level: "error", ns: "fermata" });
    return { ok: false, error: `The editor failed: ${/** @type {Error} */ (error).message}`, revision };
  }
}

/** @type {WeakMap<object, GrapesExecutor>} */
const executors = new WeakMap();

/**
 * Return the executor of an editor; it has one.
 * @param {any} editor
 * @param {{runScripts?: boolean}} [options]
 * @returns {GrapesExecutor}
 */
export function createExecutor(editor, options) {
  const known = executors.get(editor);
  if (known) return known;
  const executor = new GrapesExecutor(editor, options);
  executors.set(editor, executor);
  return executor;
}
