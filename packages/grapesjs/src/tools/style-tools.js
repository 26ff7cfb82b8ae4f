/** The tools for styles: apply CSS, assign and remove classes. */

import { stripMarkdownFence } from "../html/markdown-fences.js";
import { classesOf, isTextNode, walk } from "../state/component-tree.js";
import { refuse } from "../tool-error.js";
import { requiredText, requiredTexts } from "./arguments.js";
import { checkUnlocked } from "./node-checks.js";
import { rulesReport } from "./node-tools.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/edit.js").Edit} Edit */
/** @typedef {import("./arguments.js").ToolInput} ToolInput */

const OPERATIONS = ["merge", "replace", "delete", "remove-properties"];
const MAX_LISTED_CLASSES = 12;

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export function applyCss(document, input) {
  const operation = input.operation ?? "merge";
  if (operation === "merge" || operation === "replace") {
    const css = stripMarkdownFence(requiredText(input, "css"));
    return rulesReport(document.rules.put(css, { replace: operation === "replace" }));
  }
  if (operation === "delete") return deleteRules(document, requiredTexts(input, "selectors"));
  if (operation === "remove-properties") {
    const [selectors, properties] = [requiredTexts(input, "selectors"), requiredTexts(input, "properties")];
    const count = document.rules.removeProperties(selectors, properties);
    if (!count) refuse(`No rule for ${selectors.join(", ")} sets ${properties.join(", ")}. Read the document's css.`);
    return { cssPropertiesRemoved: count };
  }
  return refuse(`There is no operation \`${operation}\`: it is one of ${OPERATIONS.join(", ")}.`);
}

/**
 * @param {EditorDocument} document
 * @param {string[]} selectors
 */
function deleteRules(document, selectors) {
  const found = document.rules.matching(selectors).length;
  const missing = document.rules.remove(selectors);
  const note = `There is no rule for ${missing.join(", ")}. Use the selector as it is written in the document's css.`;
  if (!found) refuse(note);
  return { cssRulesDeleted: found, ...(missing.length ? { note } : {}) };
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function assignClass(document, input, edit) {
  const { component, name } = readClassArguments(document, input);
  const classes = classesOf(component);
  if (classes.includes(name)) return { note: `The node has the class ${name} already.` };
  checkKnownClass(document, name);
  edit.apply({ op: "classes", id: document.ids.of(component), list: [...classes, name] });
  return undefined;
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function removeClass(document, input, edit) {
  const { component, name } = readClassArguments(document, input);
  const classes = classesOf(component);
  if (!classes.includes(name)) {
    return { note: `The node does not have the class ${name}. It has: ${classes.join(", ") || "none"}.` };
  }
  edit.apply({ op: "classes", id: document.ids.of(component), list: classes.filter((one) => one !== name) });
  return undefined;
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
function readClassArguments(document, input) {
  const component = document.ids.find(requiredText(input, "nodeId"));
  checkUnlocked(document, component);
  const name = requiredText(input, "classId").trim().replace(/^\./, "");
  if (!name || /[\s"'<>=`]/.test(name)) refuse("`classId` is the name of one class, such as `card`.");
  document.typing.protect(component, { wholeSubtree: false });
  return { component, name };
}

/**
 * @param {EditorDocument} document
 * @param {string} name
 */
function checkKnownClass(document, name) {
  const known = knownClasses(document);
  if (known.includes(name)) return;
  const similar = known.filter((one) => one.includes(name.slice(0, 3)) || name.includes(one.slice(0, 3)));
  const listed = (similar.length ? similar : known).slice(0, MAX_LISTED_CLASSES);
  const sentence = listed.length ? ` There are: ${listed.join(", ")}.` : "";
  refuse(
    `There is no class ${name} on this page or in its style sheets.${sentence} Write its rule with applyCss first.`,
  );
}

/**
 * @param {EditorDocument} document
 * @returns {string[]} the classes that elements have, and those that rules are for
 */
function knownClasses(document) {
  const names = new Set();
  for (const root of document.ids.roots()) {
    walk(root, (one) => {
      if (!isTextNode(one)) for (const name of classesOf(one)) names.add(name);
    });
  }
  for (const rule of document.rules.all()) {
    for (const [, name] of rule.selectorsToString().matchAll(/\.((?:[\w-]|[^\0-\x7f]|\\.)+)/g)) {
      names.add(name.replace(/\\(.)/g, "$1"));
    }
  }
  return [...names].sort();
}
