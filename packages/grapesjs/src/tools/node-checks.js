import { checkBrowserKeeps, checkNesting, checkPlace, VOID_TAGS } from "../html/places.js";
import { ancestorsOf, isTextNode, tagOf, walk } from "../state/component-tree.js";
import { refuse } from "../tool-error.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/component-tree.js").Component} Component */
/** @typedef {import("../html/clean-html.js").CleanFragment} CleanFragment */

const FIXED_TAGS = ["html", "head", "body"];
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
  document.typing.protect(component, { wholeSubtree: false });
  return component;
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
  if (component.get("locked")) refuse(`The <${tag}> ${id} is locked in the editor. Ask the user to unlock it.`);
  if (participle === "deleted" && component.get("removable") === false) {
    refuse(`The <${tag}> ${id} is protected from removal in this editor.`);
  }
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
