/** Collect the changes of one tool call, and what takes them back. */

import { ConflictError, ToolError } from "../tool-error.js";
import { kindOf } from "./operations.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("./document-state.js").DocumentState} DocumentState */
/** @typedef {import("./operations.js").Operation} Operation */
/** @typedef {import("../css/rule-json.js").RuleJson} RuleJson */
/** @typedef {{key: string, is: RuleJson | null, to: RuleJson | null, at: number}} RuleChange */
/**
 * What takes an edit back; JSON that survives a reload.
 * @typedef {object} Patch
 * @property {string} was the revision before the edit
 * @property {Operation[]} ops in the order in which they take it back
 * @property {RuleChange[]} rules
 */

/** The changes of one tool call, and what takes them back. */
export class Edit {
  /**
   * @param {EditorDocument} document
   * @param {DocumentState} before
   */
  constructor(document, before) {
    this.document = document;
    this.before = before;
    /** @type {{operation: Operation, inverse: Operation[]}[]} */
    this.applied = [];
  }

  /**
   * Carry out an operation.
   * @param {Operation} operation
   * @returns {Operation[]} what takes it back
   */
  apply(operation) {
    const inverse = kindOf(operation).apply(this.document, operation);
    this.applied.push({ operation, inverse });
    return inverse;
  }

  /** Take back what was done so far, after a later operation failed. */
  rollBack() {
    for (const { inverse } of this.applied.toReversed()) {
      for (const operation of inverse) kindOf(operation).apply(this.document, operation);
    }
    this.document.rules.set(this.#ruleChanges(this.document.reader.read()));
    this.applied = [];
  }

  /**
   * @param {DocumentState} after
   * @returns {Patch | null} null if nothing was changed
   */
  patch(after) {
    const rules = this.#ruleChanges(after);
    const inverse = this.applied.toReversed().flatMap((step) => step.inverse);
    if (!inverse.length && !rules.length) return null;
    const ops = inverse.map((operation) => ({
      ...operation,
      is: kindOf(operation).expect(this.document, operation, after) ?? null,
    }));
    return { was: this.before.revision, ops, rules };
  }

  /** The operations that set values, with what sets the old ones. */
  get settings() {
    return this.applied.filter(({ operation }) => kindOf(operation).isSetting);
  }

  /**
   * @param {DocumentState} after
   * @returns {RuleChange[]} what brings the rules back
   */
  #ruleChanges(after) {
    /** @type {RuleChange[]} */
    const changes = [];
    for (const key of new Set([...this.before.rules.keys(), ...after.rules.keys()])) {
      if (this.before.ruleText(key) === after.ruleText(key)) continue;
      const [was, is] = [this.before.rules.get(key), after.rules.get(key)];
      changes.push({ key, is: is?.json ?? null, to: was?.json ?? null, at: was?.at ?? 0 });
    }
    return changes;
  }
}

/**
 * Carry out a patch, all of it or nothing.
 * @param {Edit} edit
 * @param {unknown} patch from the result of an earlier edit
 * @throws {ConflictError} what the edit left behind was changed
 */
export function applyPatch(edit, patch) {
  const { ops, rules } = readPatch(patch);
  const { document, before } = edit;
  for (const operation of ops) checkExpected(document, before, operation);
  for (const { key, is } of rules) {
    const current = before.ruleText(key);
    if (current !== (is ? JSON.stringify(is) : "")) {
      throw new ConflictError("A style rule was changed since. That change was kept.", `The rule is now: ${current}`);
    }
  }
  for (const operation of ops) edit.apply(withoutExpectation(operation));
  keepOtherRules(edit, new Set(rules.map(({ key }) => key)));
  document.rules.set(rules);
}

/**
 * Put rules back that went with the elements which operations have replaced: GrapesJS removes the rules of their ids.
 * @param {Edit} edit
 * @param {Set<string>} changed keys of the rules that the patch itself changes
 */
function keepOtherRules({ document, before }, changed) {
  const now = document.rules.stored();
  const lost = [...before.rules.values()].filter(({ key, text }) => !changed.has(key) && now.get(key)?.text !== text);
  document.rules.set(lost.map(({ key, json, at }) => ({ key, to: json, at })));
}

/**
 * @param {unknown} patch
 * @returns {Patch}
 */
function readPatch(patch) {
  const { was, ops, rules } = /** @type {Patch} */ (patch ?? {});
  if (typeof was !== "string" || !Array.isArray(ops) || !Array.isArray(rules)) {
    throw new ToolError("This is no undo information of this editor.");
  }
  return { was, ops, rules };
}

/**
 * @param {EditorDocument} document
 * @param {DocumentState} state
 * @param {Operation} operation
 */
function checkExpected(document, state, operation) {
  const is = kindOf(operation).expect(document, operation, state) ?? null;
  if (JSON.stringify(is) === JSON.stringify(operation.is ?? null)) return;
  const id = operation.id ?? operation.parent ?? operation.path ?? "page";
  throw new ConflictError(`${id} was changed since. That change was kept.`, document.describe(String(id)));
}

/**
 * @param {Operation} operation
 * @returns {Operation}
 */
function withoutExpectation({ is, ...operation }) {
  return operation;
}
