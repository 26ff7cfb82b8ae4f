/** The tools that read the document: its outline, a page, the HTML of a node. */

import { tagOf } from "../state/component-tree.js";
import { refuse } from "../tool-error.js";
import { optionalInteger, requiredText } from "./arguments.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../document.js").DocumentRef} DocumentRef */
/** @typedef {import("./arguments.js").ToolInput} ToolInput */

const MAX_PART_CHARS = 80_000;
const LONG_DATA = /data:([\w.+-]+\/[\w.+-]+)?((?:;[\w=.+-]+)*);base64,([A-Za-z0-9+/=_-]{120,})/g;
const LONG_URL = /(?:https?:|data:)[^\s"'<>)]{400,}/g;

/**
 * Find the component that a document reference names; the body of the open page without one.
 * @param {EditorDocument} document
 * @param {unknown} reference
 * @returns {{ref: DocumentRef, title: string, root: any, page?: any}}
 */
export function findDocument(document, reference) {
  const { Pages } = document.editor;
  const { type, id } = /** @type {DocumentRef} */ (reference ?? document.refOf(document.currentPage));
  if (type === "visualComponent") {
    const main = symbolsOf(document).find((one) => document.ids.of(one) === id);
    if (main) return { ref: { type, id }, title: main.getName(), root: main };
  }
  const page = type === "visualComponent" ? undefined : Pages.get(id);
  if (!page) {
    const refs = Pages.getAll().map((/** @type {any} */ one) => JSON.stringify(document.refOf(one)));
    return refuse(`There is no document ${JSON.stringify({ type, id })}. There are: ${refs.join(", ")}.`);
  }
  return { ref: document.refOf(page), title: document.titleOf(page), root: page.getMainComponent(), page };
}

/**
 * @param {EditorDocument} document
 * @returns {any[]} the main components of symbols
 */
export function symbolsOf(document) {
  return document.editor.Components.getSymbols?.() ?? [];
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export function readDocument(document, input) {
  const { ref, title, root } = findDocument(document, input.document);
  const part = optionalInteger(input, "part", 1) ?? 1;
  return { document: ref, title, ...documentPart(document.htmlOf(root), document.rules.toText(), part) };
}

/**
 * @param {string} html
 * @param {string} css
 * @param {number} part numbered from 1
 */
function documentPart(html, css, part) {
  const [shownHtml, shownCss] = [omitLongData(html), omitLongData(css)];
  const total = Math.max(1, Math.ceil((shownHtml.length + shownCss.length) / MAX_PART_CHARS));
  if (part > total) refuse(`There is no part ${part}; the document has ${total}.`);
  const [start, end] = [(part - 1) * MAX_PART_CHARS, part * MAX_PART_CHARS];
  const cssStart = (/** @type {number} */ position) => Math.max(0, position - shownHtml.length);
  return {
    html: shownHtml.slice(start, end),
    css: shownCss.slice(cssStart(start), cssStart(end)),
    pageInfo: {
      part,
      totalParts: total,
      nextPart: part < total ? part + 1 : null,
      maxChars: MAX_PART_CHARS,
      totalChars: shownHtml.length + shownCss.length,
      note: total > 1 ? "Read the next part until nextPart is null." : "This is the whole document.",
    },
  };
}

/** @param {string} text */
function omitLongData(text) {
  const isShort = text.length < 120;
  if (isShort) return text;
  return text
    .replace(
      LONG_DATA,
      (_, type = "", parameters, data) => `data:${type}${parameters};base64,[omitted ${data.length} chars]`,
    )
    .replace(LONG_URL, (url) => `${url.slice(0, 120)}[omitted ${url.length - 160} chars]${url.slice(-40)}`);
}

/**
 * Show a page on the canvas.
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export function openDocument(document, input) {
  const { ref, page } = findDocument(document, input.document);
  if (!page) {
    return refuse(
      "A visual component has no canvas of its own here. Read it with read_document, or open a page with it.",
    );
  }
  if (page !== document.currentPage) {
    document.typing.protectPage();
    document.editor.UndoManager.skip(() => document.editor.Pages.select(page));
  }
  return { document: ref };
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export function getNodeHtml(document, input) {
  const component = document.ids.find(requiredText(input, "nodeId"));
  const html = document.htmlOf(component);
  return { html: tagOf(component) === "body" ? html.replace(/^<body[^>]*>|<\/body>$/g, "") : html };
}
