/** Find out whether somebody has changed what the model planned a call on. */

import { ConflictError } from "../tool-error.js";
import { DocumentState } from "./document-state.js";
import { hashText } from "./hash.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("./document-state.js").NodeState} NodeState */
/** @typedef {import("../css/style-rules.js").StoredRule} StoredRule */
/**
 * A part of the document that a call depends on.
 * @typedef {{node: string, parts: ("own" | "text" | "children" | "deep")[]} | {rule: string} | {page: string}
 *   | {code: string}} Touch
 */

const NODE_PARTS = /** @type {const} */ (["own", "text", "children"]);
const MAX_CHANGES_CHARS = 3_500;
const MAX_LISTED_NODES = 8;
const MAX_STATES = 40;
const MAX_REMEMBERED_NODES = 100_000;

/** States of the document that the model may have planned a call on. */
export class KnownStates {
  constructor() {
    /** @type {Map<string, DocumentState>} */
    this.states = new Map();
    /** @type {DocumentState | undefined} */
    this.latest = undefined;
  }

  /** @param {DocumentState} state that is reported to the model */
  add(state) {
    this.states.delete(state.revision);
    this.states.set(state.revision, state);
    this.latest = state;
    const total = () => [...this.states.values()].reduce((sum, { nodes }) => sum + nodes.size, 0);
    while (this.states.size > MAX_STATES || (this.states.size > 1 && total() > MAX_REMEMBERED_NODES)) {
      this.states.delete(/** @type {string} */ (this.states.keys().next().value));
    }
  }

  /**
   * Add the state after an edit, as the model knows it: with its own changes, and without those of others.
   * @param {DocumentState} planned on which the edit was planned
   * @param {DocumentState} before the edit
   * @param {DocumentState} after the edit
   * @returns {string} the revision to report. It has a mark if the model does not know all of the document, so that a
   *   call which was planned on it is told from one that was planned after reading.
   */
  addEdited(planned, before, after) {
    const states = [planned, before, after];
    const isSameNode = (/** @type {NodeState} */ is, /** @type {NodeState} */ known) =>
      NODE_PARTS.every((part) => is[part] === known[part]);
    const isSameRule = (/** @type {StoredRule} */ is, /** @type {StoredRule} */ known) => is.text === known.text;
    const nodes = knownMembers(
      states.map((state) => state.nodes),
      mergeNode,
      isSameNode,
    );
    const rules = knownMembers(
      states.map((state) => state.rules),
      mergeRule,
      isSameRule,
    );
    const pages = knownMembers(
      states.map((state) => state.pages),
      mergeHash,
      Object.is,
    );
    const code = knownMembers(
      states.map((state) => state.code),
      mergeHash,
      Object.is,
    );
    const isWhole = [nodes, rules, pages, code].every((members) => members.isWhole);
    const revision = isWhole ? after.revision : `${after.revision}~${hashText(planned.revision)}`;
    this.add(new DocumentState(revision, nodes.known, rules.known, pages.known, code.known));
    return revision;
  }

  /**
   * Raise a conflict if what a call touches was changed since it was planned.
   * @param {EditorDocument} document
   * @param {DocumentState} current
   * @param {string | undefined} plannedOn revision
   * @param {Touch[]} touches
   * @returns {DocumentState} on which the call was planned
   */
  check(document, current, plannedOn, touches) {
    const revision = plannedOn || this.latest?.revision || current.revision;
    const planned = this.states.get(revision) ?? (revision === current.revision ? current : undefined);
    if (planned && !touches.some((touch) => isChanged(touch, planned, current))) return planned;
    throw new ConflictError(
      "The page was changed by someone else since you read it; that change was kept. Read the document again.",
      planned ? describeChanges(document, planned, current) : "",
    );
  }
}

/**
 * Return what the model knows of a part: its own change, or else what it knew before.
 * @template T
 * @typedef {(planned: T | undefined, before: T | undefined, after: T) => T | undefined} Merge
 */

/** @type {Merge<NodeState>} */
function mergeNode(planned, before, after) {
  if (!before || !planned) return before ? undefined : after;
  const known = { ...after };
  for (const part of NODE_PARTS) if (before[part] === after[part]) known[part] = planned[part];
  return known;
}

/** @type {Merge<StoredRule>} */
function mergeRule(planned, before, after) {
  return before?.text === after.text ? planned : after;
}

/** @type {Merge<string>} */
function mergeHash(planned, before, after) {
  return before === after ? planned : after;
}

/**
 * Return the members of a state that the model knows.
 * @template T
 * @param {Map<string, T>[]} states planned, before and after the edit
 * @param {Merge<T>} merge
 * @param {(is: T, known: T) => boolean} isSame
 * @returns {{known: Map<string, T>, isWhole: boolean}} `isWhole` if the model knows all of them as they are
 */
function knownMembers([planned, before, after], merge, isSame) {
  const known = new Map();
  let isWhole = [...planned.keys()].every((key) => before.has(key));
  for (const [key, is] of after) {
    const value = merge(planned.get(key), before.get(key), is);
    if (value !== undefined) known.set(key, value);
    isWhole &&= value !== undefined && isSame(is, value);
  }
  return { known, isWhole };
}

/**
 * @param {Touch} touch
 * @param {DocumentState} planned
 * @param {DocumentState} current
 */
function isChanged(touch, planned, current) {
  if ("rule" in touch) return planned.ruleText(touch.rule) !== current.ruleText(touch.rule);
  if ("page" in touch) return planned.pages.get(touch.page) !== current.pages.get(touch.page);
  if ("code" in touch) return planned.code.get(touch.code) !== current.code.get(touch.code);
  if (touch.parts.includes("deep")) return isSubtreeChanged(touch.node, planned, current);
  const [was, is] = [planned.nodes.get(touch.node), current.nodes.get(touch.node)];
  if (!was || !is) return was !== is;
  return touch.parts.some((part) => was[part] !== is[part]);
}

/**
 * Tell whether anything in a node was changed. Its hash does not say it: the model's own edits change that as well.
 * @param {string} id
 * @param {DocumentState} planned
 * @param {DocumentState} current
 * @returns {boolean}
 */
function isSubtreeChanged(id, planned, current) {
  const [was, is] = [planned.nodes.get(id), current.nodes.get(id)];
  if (!was || !is) return was !== is;
  if (NODE_PARTS.some((part) => was[part] !== is[part])) return true;
  return is.children
    .split(" ")
    .filter(Boolean)
    .some((child) => isSubtreeChanged(child, planned, current));
}

/**
 * Say what was changed between two states.
 * @param {EditorDocument} document
 * @param {DocumentState} planned
 * @param {DocumentState} current
 */
function describeChanges(document, planned, current) {
  const sentences = [];
  for (const [id, is] of current.nodes) {
    const was = planned.nodes.get(id);
    if (was && NODE_PARTS.some((part) => was[part] !== is[part])) {
      sentences.push(document.describe(id));
    }
  }
  for (const id of planned.nodes.keys()) if (!current.nodes.has(id)) sentences.push(`${id} is gone.`);
  const listed = sentences.slice(0, MAX_LISTED_NODES);
  if (sentences.length > listed.length) listed.push(`${sentences.length - listed.length} more nodes were changed.`);
  for (const key of new Set([...planned.rules.keys(), ...current.rules.keys()])) {
    if (planned.ruleText(key) === current.ruleText(key)) continue;
    const style = current.rules.get(key)?.json.style;
    listed.push(`The rule ${key.replace("|", " ").trim()} is ${style ? `now ${JSON.stringify(style)}` : "gone"}.`);
  }
  return listed.join("\n").slice(0, MAX_CHANGES_CHARS);
}
