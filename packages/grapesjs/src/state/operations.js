import { ToolError } from "../tool-error.js";
import { childrenOf, classesOf, isTextNode, jsonOf } from "./components.js";
import { PAGE_OPERATIONS } from "./page-operations.js";

/** @typedef {import("./components.js").Component} Component */
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
/** @typedef {{index: number, after?: string, offset?: number, before?: string}} Place */

/**
 * @param {EditorDocument} document
 * @param {Component} component
 * @returns {Place} by its neighbours, which other edits move with it
 */
export function placeOf(document, component) {
  const siblings = childrenOf(component.parent());
  const index = siblings.indexOf(component);
  const before = siblings.slice(0, index).findLastIndex((one) => !isTextNode(one));
  const after = siblings.slice(index + 1).find((one) => !isTextNode(one));
  return {
    index,
    ...(before >= 0 ? { after: document.ids.of(siblings[before]), offset: index - before } : {}),
    ...(after ? { before: document.ids.of(after) } : {}),
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
  const after = find(place.after);
  if (after >= 0) return Math.min(after + (place.offset ?? 1), siblings.length);
  const before = find(place.before);
  return before >= 0 ? before : Math.min(place.index, siblings.length);
}

/** @type {OperationKind} */
const insert = {
  apply(document, { parent, at, json }) {
    const target = document.ids.find(parent);
    document.ids.release(json);
    const added = target.append(json, { at: indexOfPlace(document, target, at) });
    return added
      .filter((/** @type {Component} */ one) => !isTextNode(one))
      .map((/** @type {Component} */ one) => ({ op: "remove", id: document.ids.of(one) }));
  },
  expect: (_, { parent }, state) => state.nodes.has(parent),
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
 * @param {EditorDocument} document
 * @param {Component} component
 * @param {string} name
 * @returns {string | boolean | null}
 */
export function attributeOf(document, component, name) {
  if (name === "id") return document.ids.ownIdAttribute(component) || null;
  const { attributes } = component;
  if (name === "src" && "src" in attributes) {
    return typeof attributes.src === "string" && !attributes.src.startsWith("<svg") ? attributes.src || null : null;
  }
  return attributes.attributes?.[name] ?? null;
}

/**
 * @param {EditorDocument} document
 * @param {Component} component
 * @param {string} name
 * @param {string | boolean | null} value null removes it
 */
function setAttribute(document, component, name, value) {
  const { id, ...rest } = component.get("attributes");
  if (name === "id") {
    // without `idUpdate` GrapesJS takes the removal of an id back
    if (value) component.setId(value);
    else component.set("attributes", rest, { idUpdate: true });
    document.ids.setOwnId(component, String(value ?? ""));
    return;
  }
  // an image keeps its address in a member of its own, and shows only that one
  if (name === "src" && "src" in component.attributes) component.set("src", value ?? "");
  if (value === null) component.removeAttributes(name);
  else component.addAttributes({ [name]: value });
}

/** @type {OperationKind} */
const attributes = {
  isSetting: true,
  apply(document, { id, set }) {
    const component = document.ids.find(id);
    const names = Object.keys(set);
    const old = Object.fromEntries(names.map((name) => [name, attributeOf(document, component, name)]));
    for (const name of names) {
      if (set[name] !== old[name]) setAttribute(document, component, name, set[name]);
    }
    return [{ op: "attributes", id, set: old }];
  },
  expect(document, { id, set }, state) {
    if (!state.nodes.has(id)) return undefined;
    const component = document.ids.find(id);
    return Object.keys(set).map((name) => attributeOf(document, component, name));
  },
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
const KINDS = { insert, remove, move, content, attributes, classes, name, code, ...PAGE_OPERATIONS };

/**
 * @param {Operation} operation
 * @returns {OperationKind}
 */
export function kindOf(operation) {
  const kind = Object.hasOwn(KINDS, operation.op) ? KINDS[operation.op] : undefined;
  if (!kind) throw new ToolError(`This editor knows no operation ${String(operation.op).slice(0, 40)}.`);
  return kind;
}
