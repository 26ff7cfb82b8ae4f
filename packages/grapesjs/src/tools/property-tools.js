/** The tool that sets attributes and texts of a node. */

import { isActiveAddress } from "../html/active-content.js";
import { casedAttributeName, describeAttributes, isSettableAttribute } from "../html/attributes.js";
import { VOID_TAGS } from "../html/places.js";
import { elementsIn, tagOf, walk } from "../state/component-tree.js";
import { refuse } from "../tool-error.js";
import { optionalObject, optionalText, requiredText } from "./arguments.js";
import { checkUnlocked } from "./node-checks.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/component-tree.js").Component} Component */
/** @typedef {import("../state/edit.js").Edit} Edit */
/** @typedef {import("./arguments.js").ToolInput} ToolInput */

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function updateNodeProps(document, input, edit) {
  checkBreakpoint(document, optionalText(input, "breakpointId"));
  const component = document.ids.find(requiredText(input, "nodeId"));
  checkUnlocked(document, component);
  const { text, ...patch } = optionalObject(input, "patch");
  const names = Object.keys(patch);
  if (text === undefined && !names.length) refuse(`\`patch\` is empty. ${describeFor(component)}`);
  document.typing.protect(component, { wholeSubtree: false });
  if (text !== undefined) checkText(component, text);
  const entries = names.map((name) => [attributeName(name), checkedValue(document, component, name, patch[name])]);
  const id = document.ids.of(component);
  if ("id" in patch) setId(document, component, /** @type {string | null} */ (Object.fromEntries(entries).id), edit);
  if (entries.some(([name]) => name !== "id"))
    edit.apply({ op: "attributes", id, set: Object.fromEntries(entries.filter(([name]) => name !== "id")) });
  if (text !== undefined) edit.apply({ op: "content", id, json: [{ type: "textnode", content: text }] });
  return undefined;
}

/**
 * Set an `id` attribute, or remove it. An element whose styles are a rule of its id gets another one instead.
 * @param {EditorDocument} document
 * @param {Component} component
 * @param {string | null} value
 * @param {Edit} edit
 */
function setId(document, component, value, edit) {
  const old = component.getId();
  if (!value && !document.ids.ownIdAttribute(component)) return;
  const isStyled = document.rules.matching([`#${old}`]).length > 0;
  const to = value ?? (isStyled ? `i${Math.random().toString(36).slice(2, 8)}` : null);
  edit.apply({ op: "id", id: document.ids.of(component), to, own: value ?? "" });
}

/**
 * @param {EditorDocument} document
 * @param {string} breakpointId
 */
function checkBreakpoint(document, breakpointId) {
  const base = document.editor.Devices.getAll().models.find((/** @type {any} */ one) => !one.get("widthMedia"));
  if (breakpointId && breakpointId !== String(base?.id)) {
    refuse(
      "This editor has one set of properties for all widths. For other styles at a breakpoint, put a rule into a media " +
        "query with applyCss; for another image use srcset or a <picture>.",
    );
  }
}

/**
 * @param {Component} component
 * @param {unknown} text
 */
function checkText(component, text) {
  const tag = tagOf(component);
  if (typeof text !== "string") refuse("`text` must be a text.");
  if (VOID_TAGS.has(tag) || tag === "script" || tag === "style") {
    refuse(`A <${tag}> has no text. ${describeFor(component)}`);
  }
  const children = [...new Set(elementsIn(component).map((child) => `<${tagOf(child)}>`))].sort();
  if (children.length) {
    refuse(`There is ${children.join(", ")} in this <${tag}>: use replaceNodeHtml, or the uid of what is in it.`);
  }
}

/** @param {string} name */
function attributeName(name) {
  return casedAttributeName(/^[A-Z]/.test(name) ? name.toLowerCase() : name);
}

/**
 * Return the value to set, or refuse an attribute that this tool does not set.
 * @param {EditorDocument} document
 * @param {Component} component
 * @param {string} argument
 * @param {unknown} value
 * @returns {string | boolean | null}
 */
function checkedValue(document, component, argument, value) {
  const name = argument.toLowerCase();
  const tag = tagOf(component);
  checkNotForOtherTool(name);
  if (!isSettableAttribute(tag, name)) {
    refuse(`\`${argument}\` is not a property of a <${tag}>. ${describeFor(component)}`);
  }
  if (name === "style") {
    refuse("This editor keeps styles in rules. Set them with applyCss, for a class of the node or for its id.");
  }
  if (value === null || value === false) return null;
  if (value === true) return name.startsWith("aria-") ? "true" : true;
  if (typeof value !== "string" && typeof value !== "number") {
    refuse(`\`${argument}\` must be a text, a number, true, false or null.`);
  }
  const text = String(value);
  checkAddress(tag, name, text);
  if (name === "id") checkId(document, component, text);
  return text;
}

/** @param {string} name */
function checkNotForOtherTool(name) {
  if (name.startsWith("on")) refuse(`\`${name}\` would be code in the page. Write behaviour with write_code_asset.`);
  if (["class", "classname", "classes"].includes(name)) {
    refuse("Classes are set with assignClass and removed with removeClass.");
  }
  if (name === "uid") refuse("A uid names a node for as long as you work on it; it cannot be set.");
  if (["html", "innerhtml", "children"].includes(name))
    refuse("The content of a node is rebuilt with replaceNodeHtml.");
}

/**
 * @param {string} tag
 * @param {string} name
 * @param {string} value
 */
function checkAddress(tag, name, value) {
  if (!isActiveAddress(tag, name, value)) return;
  if (value.replace(/\s/g, "").toLowerCase().startsWith("data:")) {
    refuse(`\`${name}\` of a <${tag}> must be an address; only pictures may be given as data.`);
  }
  refuse(`\`${name}\` must be an address, not code. Write behaviour with write_code_asset.`);
}

/**
 * @param {EditorDocument} document
 * @param {Component} component
 * @param {string} value
 */
function checkId(document, component, value) {
  if (!value || /\s/.test(value)) refuse("`id` must be a text without white space.");
  for (const root of document.ids.roots()) {
    walk(root, (other) => {
      if (other === component || other.attributes.attributes?.id !== value) return;
      const owner = `the <${tagOf(other)}> with uid ${document.ids.of(other)}`;
      refuse(`The id “${value}” is taken by ${owner}. An id occurs only once on a page.`);
    });
  }
}

/** @param {Component} component */
function describeFor(component) {
  const tag = tagOf(component);
  const holdsText = !(VOID_TAGS.has(tag) || elementsIn(component).length || tag === "script" || tag === "style");
  return describeAttributes(tag, holdsText);
}
