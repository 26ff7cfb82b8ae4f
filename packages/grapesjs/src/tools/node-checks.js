/** Check whether a node may be changed, moved or take others in. */

import { checkBrowserKeeps, checkNesting, checkPlace, VOID_TAGS } from "../html/places.js";
import { ancestorsOf, isTextNode, tagOf, walk } from "../state/component-tree.js";
import { refuse } from "../tool-error.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/component-tree.js").Component} Component */
/** @typedef {import("../html/clean-html.js").CleanFragment} CleanFragment */

const FIXED_TAGS = ["html", "head", "body"];
/** Members of a component by which an editor forbids something, and what. */
const PROTECTIONS = /** @type {Record<string, string>} */ ({
  deleted: "removable",
  moved: "draggable",
  duplicated: "copyable",
});
export const TEXT_ONLY_TAGS = ["title", "textarea"];

/**
 * Find an element that can take content, or refuse with what to do instead.
 * @param {EditorDocument} document
 * @param {string} id
 * @param {{textOnly?: boolean}} [options] accept an element that holds text only
 */
export function findContainer(document, id, { textOnly = false } = {}) {
  const component = document.ids.find(id);
  const tag = tagOf(component);
  if (VOID_TAGS.has(tag)) refuse(`A <${tag}> has no content. Choose the node around it.`);
  if (tag === "head") refuse(`Work on the body instead: its uid is ${document.ids.of(document.body)}.`);
  if (tag === "style" || tag === "script") {
    refuse("Styles are changed with applyCss, scripts with write_code_asset or patch_code_asset.");
  }
  if (TEXT_ONLY_TAGS.includes(tag) && !textOnly) refuse(`A <${tag}> holds text only. Replace its content instead.`);
  checkUnlocked(document, component);
  document.typing.protect(component, { wholeSubtree: false });
  return component;
}

/**
 * Refuse to change what the editor has locked (decision 0311). A lock holds for all within it, until one of them is unlocked again.
 * @param {EditorDocument} document
 * @param {Component} component
 */
export function checkUnlocked(document, component) {
  const around = [component, ...ancestorsOf(component)];
  if (around.find((one) => typeof one.get("locked") === "boolean")?.get("locked")) {
    const id = document.ids.of(component);
    refuse(`The <${tagOf(component)}> ${id} is locked in the editor. Ask the user to unlock it.`);
  }
}

/**
 * Refuse to remove what is in an element if some of it is locked or protected from removal.
 * @param {EditorDocument} document
 * @param {Component} component
 */
export function checkContentRemovable(document, component) {
  walk(component, (one) => {
    if (one === component || isTextNode(one)) return;
    if (one.get("locked") !== true && !isProtected(one, "removable")) return;
    const inner = `The <${tagOf(one)}> ${document.ids.of(one)}, which is in it,`;
    refuse(`${inner} is locked or protected from removal in this editor. Work on the elements beside it.`);
  });
}

/**
 * Tell whether an editor forbids something. GrapesJS forbids the same of inline elements in a text that was edited, which
 * is a part of its own editing and nobody's wish.
 * @param {Component} component
 * @param {string} member
 */
function isProtected(component, member) {
  return component.get(member) === false && !component.get("_innertext");
}

/**
 * @param {EditorDocument} document
 * @param {string} id
 * @param {string} participle
 */
export function findMovable(document, id, participle) {
  const component = document.ids.find(id);
  const tag = tagOf(component);
  if (FIXED_TAGS.includes(tag) || !component.parent()) {
    refuse(`The ${tag} of a page cannot be ${participle}. Choose a node in it.`);
  }
  checkUnlocked(document, component);
  if (isProtected(component, PROTECTIONS[participle])) {
    refuse(`The <${tag}> ${id} cannot be ${participle} in this editor: its owner has protected it.`);
  }
  if (participle === "deleted") checkContentRemovable(document, component);
  return component;
}

/**
 * @param {EditorDocument} document
 * @param {Component} parent
 * @param {CleanFragment} fragment
 */
export function checkFragment(document, parent, { content, html }) {
  const tags = [...content.children].map((one) => one.localName);
  const text = [...content.childNodes].filter((one) => one.nodeType === Node.TEXT_NODE).map((one) => one.textContent);
  checkPlace(tagOf(parent), tags, text.join("").trim());
  const all = [...content.querySelectorAll("*")].map((one) => one.localName);
  checkAround(document, parent, all, html);
}

/**
 * @param {EditorDocument} document
 * @param {Component} parent
 * @param {Component} component
 */
export function checkComponentPlace(document, parent, component) {
  /** @type {string[]} */
  const tags = [];
  walk(component, (one) => !isTextNode(one) && tags.push(tagOf(one)));
  checkPlace(tagOf(parent), [tagOf(component)]);
  checkAround(document, parent, tags, document.htmlOf(component, { plain: true }));
}

/**
 * @param {EditorDocument} document
 * @param {Component} parent
 * @param {string[]} tags of all elements in the HTML
 * @param {string} html
 */
function checkAround(document, parent, tags, html) {
  const around = [parent, ...ancestorsOf(parent)];
  checkNesting(
    around.map((one) => ({ tag: tagOf(one), id: document.ids.of(one) })),
    tags,
  );
  const isRowOfTable = tagOf(parent) === "table" || around.some((one) => tagOf(one) === "svg");
  if (!isRowOfTable) checkBrowserKeeps(around.map(tagOf), html);
}
