/** The tools for nodes: insert, replace, delete, move, duplicate and rename them. */

import { describeBrokenLinks } from "../html/broken-links.js";
import { cleanHtml } from "../html/clean-html.js";
import { choosePlace } from "../html/places.js";
import {
  childIndex,
  childrenOf,
  classesOf,
  elementsIn,
  isTextNode,
  isWithin,
  tagOf,
  walk,
} from "../state/component-tree.js";
import { refuse } from "../tool-error.js";
import { optionalInteger, requiredText } from "./arguments.js";
import { makeCopies } from "./copies.js";
import { MODULE_BY_TAG } from "./module-names.js";
import {
  checkComponentPlace,
  checkContentRemovable,
  checkFragment,
  checkUnlocked,
  findContainer,
  findMovable,
  TEXT_ONLY_TAGS,
} from "./node-checks.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/component-tree.js").Component} Component */
/** @typedef {import("../state/edit.js").Edit} Edit */
/** @typedef {import("./arguments.js").ToolInput} ToolInput */
/** @typedef {import("../html/clean-html.js").CleanFragment} CleanFragment */

const MAX_COPIES = 50;

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function insertHtml(document, input, edit) {
  const parent = findContainer(document, requiredText(input, "parentId"));
  const index = optionalInteger(input, "index");
  const fragment = cleanHtml(requiredText(input, "html"));
  if (!fragment.html) return putStylesOnly(document, fragment);
  checkFragment(document, parent, fragment);
  const [target, at] = placeFor(parent, fragment, index);
  const json = parseComponents(document, fragment);
  const place = { index: childIndex(target, at), ...placeBefore(document, target, at) };
  const before = new Set(elementsIn(target));
  edit.apply({ op: "insert", parent: document.ids.of(target), at: place, json });
  const made = elementsIn(target).filter((one) => !before.has(one));
  const count = elementsIn(parent).length - (target === parent ? made.length : 0);
  const isBehind = index !== undefined && index > count;
  const note = isBehind
    ? `<${tagOf(parent)}> has ${count} elements, so index ${index} is behind the last of them.`
    : "";
  return report(document, made, fragment, note);
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function replaceNodeHtml(document, input, edit) {
  const component = findContainer(document, requiredText(input, "nodeId"), { textOnly: true });
  document.typing.protect(component, { wholeSubtree: true });
  checkContentRemovable(document, component);
  const id = document.ids.of(component);
  if (TEXT_ONLY_TAGS.includes(tagOf(component))) {
    const text = requiredText(input, "html");
    if (text.toLowerCase().includes(`</${tagOf(component)}`)) {
      refuse(`A <${tagOf(component)}> holds text only. Send the text without tags.`);
    }
    edit.apply({ op: "content", id, json: [{ type: "textnode", content: text.trim() }] });
    return { nodeIds: [] };
  }
  const fragment = cleanHtml(requiredText(input, "html"));
  if (!fragment.html) return putStylesOnly(document, fragment);
  checkFragment(document, component, fragment);
  const links = describeBrokenLinks(document);
  edit.apply({ op: "content", id, json: parseComponents(document, fragment) });
  return report(document, elementsIn(component), fragment, links());
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function deleteNode(document, input, edit) {
  const component = findMovable(document, requiredText(input, "nodeId"), "deleted");
  document.typing.protect(component, { wholeSubtree: true });
  const links = describeBrokenLinks(document);
  edit.apply({ op: "remove", id: document.ids.of(component) });
  const note = links();
  return note ? { note } : undefined;
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function moveNode(document, input, edit) {
  const component = findMovable(document, requiredText(input, "nodeId"), "moved");
  const parent = findContainer(document, requiredText(input, "newParentId"));
  if (isWithin(component, parent)) {
    const [outer, inner] = [document.ids.of(component), document.ids.of(parent)];
    refuse(`${inner} is ${outer} or is inside it: a node cannot be moved into itself.`);
  }
  document.typing.protect(component, { wholeSubtree: true });
  document.typing.protect(parent, { wholeSubtree: false });
  checkComponentPlace(document, parent, component);
  const others = elementsIn(parent).filter((one) => one !== component);
  const index = optionalInteger(input, "newIndex");
  if (index === undefined || index > others.length) {
    const count = `besides this node there are ${others.length} elements in it`;
    return refuse(
      `\`newIndex\` is the place in <${tagOf(parent)}>: ${count}, so it is a number from 0 to ${others.length}.`,
    );
  }
  const isThere = component.parent() === parent && elementsIn(parent).indexOf(component) === index;
  if (isThere) return { note: "The node is there already." };
  const next = others[index];
  const at = next ? { index: 0, before: document.ids.of(next) } : { index: childrenOf(parent).length };
  edit.apply({ op: "move", id: document.ids.of(component), parent: document.ids.of(parent), at });
  return undefined;
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function duplicateNode(document, input, edit) {
  const component = findMovable(document, requiredText(input, "nodeId"), "duplicated");
  const count = optionalInteger(input, "count", 1, MAX_COPIES) ?? 1;
  document.typing.protect(component, { wholeSubtree: true });
  const parent = component.parent();
  checkComponentPlace(document, parent, component);
  const { copies, newIds } = makeCopies(document, component, count);
  const at = { index: component.index() + 1, after: document.ids.of(component), offset: 1 };
  const made = edit.apply({ op: "insert", parent: document.ids.of(parent), at, json: copies });
  const nodeIds = made.map(({ id }) => id);
  const note = newIds.length
    ? `An id occurs only once on a page, so the copies have others: ${newIds.join(", ")}.`
    : "";
  return { nodeId: nodeIds[0], nodeIds, ...(note ? { note } : {}) };
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function renameNode(document, input, edit) {
  const component = document.ids.find(requiredText(input, "nodeId"));
  checkUnlocked(document, component);
  edit.apply({ op: "name", id: document.ids.of(component), to: requiredText(input, "label").trim() });
  return undefined;
}

/**
 * @param {Component} parent
 * @param {CleanFragment} fragment
 * @param {number | undefined} index
 * @returns {[Component, number | undefined]}
 */
function placeFor(parent, { content }, index) {
  const elements = elementsIn(parent);
  const tags = [...content.children].map((one) => one.localName);
  const { group, index: chosen } = choosePlace({ tag: tagOf(parent), children: elements.map(tagOf) }, tags, index);
  const target = group ? elements.findLast((one) => tagOf(one) === group) : undefined;
  return target ? [target, undefined] : [parent, chosen];
}

/**
 * @param {EditorDocument} document
 * @param {Component} parent
 * @param {number | undefined} index
 */
function placeBefore(document, parent, index) {
  const next = index === undefined ? undefined : elementsIn(parent)[index];
  return next ? { before: document.ids.of(next) } : {};
}

/**
 * Return definitions of the components that GrapesJS makes of HTML. Its own parser would drop rows of tables.
 * @param {EditorDocument} document
 * @param {CleanFragment} fragment
 */
function parseComponents(document, { content }) {
  const root = window.document.createElement("div");
  root.append(content.cloneNode(true));
  const { html } = document.editor.Parser.parseHtml("", {
    parserHtml: () => root,
    asDocument: false,
    returnArray: true,
  });
  return JSON.parse(JSON.stringify([html].flat()));
}

/**
 * @param {EditorDocument} document
 * @param {CleanFragment} fragment
 */
function putStylesOnly(document, fragment) {
  if (!fragment.css) refuse(`Nothing is left of this HTML. ${fragment.note || "Send elements or text."}`);
  return { ...rulesReport(document.rules.put(fragment.css)), ...(fragment.note ? { note: fragment.note } : {}) };
}

/** @param {{created: number, updated: number, kept: number}} counts */
export function rulesReport({ created, updated, kept }) {
  return { cssRulesCreated: created, cssRulesUpdated: updated, ...(kept ? { cssRulesKept: kept } : {}) };
}

/**
 * Put the styles of a fragment, which change no existing rule because other elements use those, and say what was made.
 * @param {EditorDocument} document
 * @param {Component[]} made
 * @param {CleanFragment} fragment
 * @param {string} note
 */
function report(document, made, fragment, note) {
  const counts = fragment.css ? rulesReport(document.rules.put(fragment.css, { keep: true })) : {};
  /** @type {{id: string, moduleId: string, classes: string[]}[]} */
  const created = [];
  for (const component of made) {
    walk(component, (one) => {
      if (isTextNode(one)) return;
      const moduleId = MODULE_BY_TAG.get(tagOf(one)) ?? "base.container";
      created.push({ id: document.ids.of(one), moduleId, classes: classesOf(one) });
    });
  }
  const notes = [note, fragment.note].filter(Boolean).join(" ");
  return { nodeIds: made.map((one) => document.ids.of(one)), created, ...counts, ...(notes ? { note: notes } : {}) };
}
