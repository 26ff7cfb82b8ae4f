import { ConflictError } from "../tool-error.js";
import { DocumentState } from "./document-state.js";

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
   */
  addEdited(planned, before, after) {
    const unchanged = (/** @type {NodeState} */ is, /** @type {NodeState} */ was) =>
      NODE_PARTS.every((part) => is[part] === was[part]);
    const isSame = (/** @type {unknown} */ is, /** @type {unknown} */ was) => is === was;
    const isSameRule = (/** @type {StoredRule} */ is, /** @type {StoredRule} */ was) => is.text === was.text;
    const nodes = knownMembers(planned.nodes, before.nodes, after.nodes, unchanged);
    const rules = knownMembers(planned.rules, before.rules, after.rules, isSameRule);
    const pages = knownMembers(planned.pages, before.pages, after.pages, isSame);
    const code = knownMembers(planned.code, before.code, after.code, isSame);
    this.add(new DocumentState(after.revision, nodes, rules, pages, code));
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
 * Return the members of a state that the model knows.
 * @template T
 * @param {Map<string, T>} planned
 * @param {Map<string, T>} before
 * @param {Map<string, T>} after
 * @param {(is: T, was: T) => boolean} isSame
 * @returns {Map<string, T>}
 */
function knownMembers(planned, before, after, isSame) {
  const known = new Map();
  for (const [key, is] of after) {
    const was = before.get(key);
    const value = was !== undefined && isSame(is, was) ? planned.get(key) : is;
    if (value !== undefined) known.set(key, value);
  }
  return known;
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
