/** The table of all tools: which function carries out which, under both of its names. */

import { parseCss } from "../css/parse-css.js";
import { rulesToGrapes } from "../css/rule-json.js";
import { keyOfJson } from "../css/rule-keys.js";
import { stripMarkdownFence } from "../html/markdown-fences.js";
import { isRootRule } from "../tokens/properties.js";
import * as code from "./code-tools.js";
import * as nodes from "./node-tools.js";
import * as pages from "./page-tools.js";
import { updateNodeProps } from "./property-tools.js";
import * as read from "./read-tools.js";
import { renderSnapshot } from "./render-tool.js";
import { setSpacingScale, setTypeScale } from "./scale-tools.js";
import * as styles from "./style-tools.js";
import { setColorTokens, setFontTokens } from "./token-tools.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/conflicts.js").Touch} Touch */
/** @typedef {import("../state/edit.js").Edit} Edit */
/** @typedef {import("./arguments.js").ToolInput} ToolInput */
/**
 * @typedef {object} WriteTool
 * @property {(document: EditorDocument, input: ToolInput, edit: Edit) => object | undefined} run
 * @property {(document: EditorDocument, input: ToolInput) => Touch[]} touches what must be as the model read it
 */

/** @type {Record<string, (document: EditorDocument, input: ToolInput) => object>} */
export const READ_TOOLS = {
  read_document: read.readDocument,
  getNodeHtml: read.getNodeHtml,
  open_document: read.openDocument,
  list_code_assets: code.listCodeAssets,
  read_code_asset: code.readCodeAsset,
  inspect_code_runtime: code.inspectCodeRuntime,
};

/** @type {Record<string, WriteTool>} */
export const WRITE_TOOLS = {
  insertHtml: { run: nodes.insertHtml, touches: (_, input) => nodeTouch(input.parentId, "children") },
  replaceNodeHtml: { run: nodes.replaceNodeHtml, touches: (_, input) => nodeTouch(input.nodeId, "deep") },
  deleteNode: { run: nodes.deleteNode, touches: (_, input) => nodeTouch(input.nodeId, "deep") },
  updateNodeProps: {
    run: updateNodeProps,
    touches: (_, input) => nodeTouch(input.nodeId, "own", ...("text" in (input.patch ?? {}) ? ["deep"] : [])),
  },
  moveNode: {
    run: nodes.moveNode,
    touches: (_, input) => [...nodeTouch(input.nodeId, "own"), ...nodeTouch(input.newParentId, "children")],
  },
  duplicateNode: { run: nodes.duplicateNode, touches: (_, input) => nodeTouch(input.nodeId, "deep") },
  renameNode: { run: nodes.renameNode, touches: (_, input) => nodeTouch(input.nodeId, "own") },
  assignClass: { run: styles.assignClass, touches: (_, input) => nodeTouch(input.nodeId, "own") },
  removeClass: { run: styles.removeClass, touches: (_, input) => nodeTouch(input.nodeId, "own") },
  applyCss: { run: styles.applyCss, touches: cssTouches },
  set_color_tokens: { run: setColorTokens, touches: rootTouches },
  set_font_tokens: { run: setFontTokens, touches: rootTouches },
  set_type_scale: { run: setTypeScale, touches: rootTouches },
  set_spacing_scale: { run: setSpacingScale, touches: rootTouches },
  addPage: { run: pages.addPage, touches: () => [] },
  deletePage: { run: pages.deletePage, touches: pageTouches },
  renamePage: { run: pages.renamePage, touches: (_, input) => [{ page: input.pageId }] },
  duplicatePage: { run: pages.duplicatePage, touches: pageTouches },
  setPageTemplate: { run: pages.setPageTemplate, touches: (_, input) => [{ page: input.pageId }] },
  clearPageTemplate: { run: pages.clearPageTemplate, touches: (_, input) => [{ page: input.pageId }] },
  write_code_asset: { run: code.writeCodeAsset, touches: (_, input) => [{ code: input.path }] },
  patch_code_asset: { run: code.patchCodeAsset, touches: () => [] },
};

/** Tools that report on the canvas, which takes a moment. */
export const CANVAS_TOOLS = { render_snapshot: renderSnapshot };
export const RESTORE_TOOL = "restore";

const NAMES = [...Object.keys(READ_TOOLS), ...Object.keys(WRITE_TOOLS), ...Object.keys(CANVAS_TOOLS)];

/**
 * Return the name of a tool in newer editors: `insertHtml` is `site_insert_html` there.
 * @param {string} name
 */
function prefixedName(name) {
  return `site_${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
}

const NAME_BY_PREFIXED = new Map(NAMES.map((name) => [prefixedName(name), name]));

/** Both names of each tool that can be executed. */
export const TOOL_NAMES = [...NAMES, ...NAME_BY_PREFIXED.keys(), RESTORE_TOOL];

/**
 * Return the name of a tool in this registry; an unknown name as it is.
 * @param {string} name
 */
export function unprefixedName(name) {
  return NAME_BY_PREFIXED.get(name) ?? name;
}

/**
 * @param {string} node
 * @param {...string} parts
 * @returns {Touch[]}
 */
function nodeTouch(node, ...parts) {
  return [{ node, parts: /** @type {any} */ (parts) }];
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @returns {Touch[]}
 */
function cssTouches(document, { css, selectors }) {
  const listed = typeof selectors === "string" ? [selectors] : Array.isArray(selectors) ? selectors.map(String) : [];
  const named = document.rules.matching(listed).map((rule) => ({ rule: document.rules.keyOf(rule) }));
  if (typeof css !== "string") return named;
  const written = parseCss(stripMarkdownFence(css)).flatMap(rulesToGrapes);
  return [...named, ...written.map((json) => ({ rule: keyOfJson(json) }))];
}

/**
 * @param {EditorDocument} document
 * @returns {Touch[]}
 */
function rootTouches(document) {
  return document.rules
    .all()
    .filter(isRootRule)
    .map((rule) => ({ rule: document.rules.keyOf(rule) }));
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @returns {Touch[]}
 */
function pageTouches(document, { pageId }) {
  const page = document.editor.Pages.get(pageId);
  if (!page) return [{ page: pageId }];
  return [{ page: pageId }, { node: document.ids.of(page.getMainComponent()), parts: ["deep"] }];
}
