/** The operations of which edits and their inverses consist, and how each is carried out. */

import { ToolError } from "../tool-error.js";
import { childrenOf, classesOf, isMember, isTextNode, jsonOf } from "./component-tree.js";
import { PAGE_OPERATIONS } from "./page-operations.js";

/** @typedef {import("./component-tree.js").Component} Component */
/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("./document-state.js").DocumentState} DocumentState */
/** @typedef {{op: string, [member: string]: any}} Operation JSON that survives a reload. `is` is what it expects. */
/**
 * @typedef {object} OperationKind
 * @property {(document: EditorDocument, operation: Operation) => Operation[]} apply makes the change, and returns what
 *   takes it back
 * @property {(document: EditorDocument, operation: Operation, state: DocumentState) => unknown} expect returns what
 *   must be the same when the operation is applied later, because the change would lose it otherwise
 * @property {boolean} [isSetting] it sets values, so that it may be applied again
 */
/** @typedef {{index: number, after?: string, offset?: number, before?: string, gap?: number}} Place */

/**
 * @param {EditorDocument} document
 * @param {Component} component
 * @returns {Place} by its neighbours, which other edits move with it
 */
export function placeOf(document, component) {
  const siblings = childrenOf(component.parent());
  const index = siblings.indexOf(component);
  const previous = siblings.slice(0, index).findLastIndex((one) => !isTextNode(one));
  const next = siblings.findIndex((one, position) => position > index && !isTextNode(one));
  return {
    index,
    ...(previous >= 0 ? { after: document.ids.of(siblings[previous]), offset: index - previous } : {}),
    ...(next >= 0 ? { before: document.ids.of(siblings[next]), gap: next - index - 1 } : {}),
  };
}

/**
 * @param {EditorDocument} document
 * @param {Component} parent
 * @param {Place} place
 */
function indexOfPlace(document, parent, place) {
  const siblings = childrenOf(parent);
  const find = (/** @type {string | undefined} */ id) =>
    id ? siblings.findIndex((one) => !isTextNode(one) && document.ids.of(one) === id) : -1;
  const previous = find(place.after);
  if (previous >= 0) return Math.min(previous + (place.offset ?? 1), siblings.length);
  const next = find(place.before);
  return next >= 0 ? Math.max(0, next - (place.gap ?? 0)) : Math.min(place.index, siblings.length);
}

/** @type {OperationKind} */
const insert = {
  apply(document, { parent, at, json }) {
    const target = document.ids.find(parent);
    document.ids.release(json);
    const index = indexOfPlace(document, target, at);
    const added = target.append(json, { at: index });
    if (added.some(isTextNode)) return [{ op: "cut", parent, ...runOf(document, target, index, added.length) }];
    return added.map((/** @type {Component} */ one) => ({ op: "remove", id: document.ids.of(one) }));
  },
  expect: (_, { parent }, state) => state.nodes.has(parent),
};

/**
 * Describe a run of children by its neighbours.
 * @param {EditorDocument} document
 * @param {Component} parent
 * @param {number} index of the first one
 * @param {number} count
 */
function runOf(document, parent, index, count) {
  const siblings = childrenOf(parent);
  const { after, offset } = placeOf(document, siblings[index]);
  const next = siblings.findIndex((one, position) => position >= index + count && !isTextNode(one));
  const end = next >= 0 ? { before: document.ids.of(siblings[next]), gap: next - index } : {};
  return { count, at: { index, ...(after ? { after, offset } : {}), ...end } };
}

/**
 * Removes texts and comments, which have no id, with the elements between them.
 * @type {OperationKind}
 */
const cut = {
  apply(document, { parent, at, count }) {
    const target = document.ids.find(parent);
    const index = indexOfPlace(document, target, at);
    const run = childrenOf(target).slice(index, index + count);
    const back = { op: "insert", parent, at, json: run.map(jsonOf) };
    for (const one of run) one.remove();
    return [back];
  },
  expect(document, { parent, at, count }, state) {
    if (!state.nodes.has(parent)) return undefined;
    const target = document.ids.find(parent);
    const index = indexOfPlace(document, target, at);
    const run = childrenOf(target).slice(index, index + count);
    return run.map((one) => (isTextNode(one) ? one.attributes.content : state.nodes.get(document.ids.of(one))?.deep));
  },
};

/** @type {OperationKind} */
const remove = {
  apply(document, { id }) {
    const component = document.ids.find(id);
    const parent = document.ids.of(component.parent());
    const back = { op: "insert", parent, at: placeOf(document, component), json: jsonOf(component) };
    component.remove();
    return [back];
  },
  expect: (_, { id }, state) => state.nodes.get(id)?.deep,
};

/** @type {OperationKind} */
const move = {
  apply(document, { id, parent, at }) {
    const component = document.ids.find(id);
    const target = document.ids.find(parent);
    const back = { op: "move", id, parent: document.ids.of(component.parent()), at: placeOf(document, component) };
    // within one parent GrapesJS counts before the component is taken out
    const shift = !at.after && !at.before && component.parent() === target && component.index() < at.index ? 1 : 0;
    component.move(target, { at: indexOfPlace(document, target, { ...at, index: at.index + shift }) });
    return [back];
  },
  expect: (document, { id }, state) => state.nodes.has(id) && document.ids.of(document.ids.find(id).parent()),
};

/** @type {OperationKind} */
const content = {
  apply(document, { id, json }) {
    const component = document.ids.find(id);
    const back = { op: "content", id, json: childrenOf(component).map(jsonOf) };
    document.ids.release(json);
    component.components(json);
    return [back];
  },
  expect: (_, { id }, state) => state.nodes.get(id)?.deep,
};

/**
 * @param {Component} component
 * @param {string} name
 * @returns {string | boolean | null}
 */
export function attributeOf(component, name) {
  const { attributes } = component;
  if (!isMember(component, name)) return attributes.attributes?.[name] ?? null;
  const value = attributes[name];
  // without an address, an image shows a picture of its own
  return typeof value === "string" && value.startsWith("<svg") ? null : value || null;
}

/**
 * @param {Component} component
 * @param {string} name
 * @param {string | boolean | null} value null removes it
 */
function setAttribute(component, name, value) {
  if (isMember(component, name)) component.set(name, name === "src" ? (value ?? "") : Boolean(value));
  if (value === null) component.removeAttributes(name);
  else component.addAttributes({ [name]: value });
}

/** @type {OperationKind} */
const attributes = {
  isSetting: true,
  apply(document, { id, set }) {
    const component = document.ids.find(id);
    const names = Object.keys(set);
    const old = Object.fromEntries(names.map((name) => [name, attributeOf(component, name)]));
    for (const name of names) {
      if (set[name] !== old[name]) setAttribute(component, name, set[name]);
    }
    return [{ op: "attributes", id, set: old }];
  },
  expect(document, { id, set }, state) {
    if (!state.nodes.has(id)) return undefined;
    const component = document.ids.find(id);
    return Object.keys(set).map((name) => attributeOf(component, name));
  },
};

/**
 * Sets the `id` attribute. GrapesJS names the rule of an element after it, and does not undo that. Without the attribute
 * the rule has the element's internal id.
 * @type {OperationKind}
 */
const id = {
  isSetting: true,
  apply(document, { id: node, to, own, internal }) {
    const component = document.ids.find(node);
    const { id: old, ...rest } = component.get("attributes");
    const back = {
      op: "id",
      id: node,
      to: old ?? null,
      own: document.ids.ownIdAttribute(component),
      internal: component.ccid,
    };
    const before = component.getId();
    if (to) document.ids.releaseId(to, component);
    // without `idUpdate` GrapesJS takes the removal of an id back
    if (to && to !== old) component.setId(to);
    else if (!to) component.set("attributes", rest, { idUpdate: true });
    if (!to && internal) document.ids.setInternalId(component, internal);
    document.ids.setOwnId(component, own);
    document.rules.renameId(before, component.getId());
    return [back];
  },
  expect: (document, { id: node }, state) =>
    state.nodes.has(node) ? (document.ids.find(node).get("attributes").id ?? "") : undefined,
};

/** @type {OperationKind} */
const classes = {
  apply(document, { id, list }) {
    const component = document.ids.find(id);
    const back = { op: "classes", id, list: classesOf(component) };
    component.setClass(list);
    return [back];
  },
  expect: (document, { id }, state) => (state.nodes.has(id) ? classesOf(document.ids.find(id)) : undefined),
};

/** @type {OperationKind} */
const name = {
  isSetting: true,
  apply(document, { id, to }) {
    const component = document.ids.find(id);
    const old = component.get("custom-name") ?? "";
    // a member that never existed is not undone
    if (component.get("custom-name") === undefined) component.set("custom-name", "", { silent: true });
    component.set("custom-name", to);
    return [{ op: "name", id, to: old }];
  },
  expect: (document, { id }, state) =>
    state.nodes.has(id) ? (document.ids.find(id).get("custom-name") ?? "") : undefined,
};

/** @type {OperationKind} */
const code = {
  isSetting: true,
  apply(document, { path, to }) {
    const old = document.code.get(path) ?? null;
    document.code.set(path, to);
    return [{ op: "code", path, to: old }];
  },
  expect: (_, { path }, state) => state.code.get(path) ?? null,
};

/** @type {Record<string, OperationKind>} */
const KINDS = { insert, cut, remove, move, content, attributes, id, classes, name, code, ...PAGE_OPERATIONS };

/**
 * @param {Operation} operation
 * @returns {OperationKind}
 */
export function kindOf(operation) {
  const kind = Object.hasOwn(KINDS, operation.op) ? KINDS[operation.op] : undefined;
  if (!kind) throw new ToolError(`This editor knows no operation ${String(operation.op).slice(0, 40)}.`);
  return kind;
}
