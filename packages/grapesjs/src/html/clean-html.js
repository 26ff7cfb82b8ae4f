/** Clean the HTML that a model writes: what runs code is taken out, and what is not closed is refused. */

import { refuse } from "../tool-error.js";
import { removeActiveContent } from "./active-content.js";
import { decodeJsonMarkup } from "./json-markup.js";
import { stripMarkdownFence } from "./markdown-fences.js";
import { INLINE_TAGS } from "./places.js";

/**
 * HTML that may be put into a page.
 * @typedef {object} CleanFragment
 * @property {DocumentFragment} content
 * @property {string} html
 * @property {string} css of the style elements that were taken out
 * @property {string} note what was left out, as a sentence; may be empty
 */

const SERVER_CODE = /<\?(?:(?!<\?)[\s\S])*?\?>|<%(?:(?!<%)[\s\S])*?%>|<\?(?:php|=)[\s\S]*$/gi;
const END_MARK = "the end of what is inserted";
const WHOLE_DOCUMENT = /<(?:!doctype|html|head|body)[\s>]/i;

/**
 * Clean HTML from a model, with the same rules as the client for files (decision 0273).
 * @param {string} html
 * @returns {CleanFragment}
 * @throws {import("../tool-error.js").ToolError} it hides code, or a tag in it is not closed
 */
export function cleanHtml(html) {
  const plain = decodeJsonMarkup(stripMarkdownFence(html)).replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  const withoutCode = plain.replace(SERVER_CODE, "");
  checkFinished(withoutCode);
  const template = document.createElement("template");
  template.innerHTML = bodyOf(withoutCode.replace(/<(?=[?%])/g, "&lt;"));
  const css = takeStyles(template.content);
  const leftOut = removeActiveContent(template.content);
  if (withoutCode !== plain) leftOut.push("code of the server");
  checkStable(template);
  keepSpacesBetweenWords(template.content);
  return { content: template.content, html: template.innerHTML.trim(), css, note: describeLeftOut(leftOut) };
}

/**
 * Refuse HTML that would take in what follows it: an open tag, comment, or text of an element such as a script.
 * @param {string} html
 */
function checkFinished(html) {
  const within = /<([A-Za-z]+)<[A-Za-z]/.exec(html);
  if (within) refuse(`The tag <${within[1]} is not closed: another one begins within it. Close it with > first.`);
  const template = document.createElement("template");
  template.innerHTML = `${html}<!--${END_MARK}-->`;
  const walker = document.createTreeWalker(template.content, NodeFilter.SHOW_COMMENT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) if (node.nodeValue === END_MARK) return;
  const opening = /<[^\s<>]{0,40}/.exec(html.slice(html.lastIndexOf("<")))?.[0] ?? "its beginning";
  refuse(`The page after this HTML would become a part of it, from ${opening} on. Close it first.`);
}

/**
 * Reduce a whole document to the content of its body and the style elements of its head.
 * @param {string} html
 */
function bodyOf(html) {
  if (!WHOLE_DOCUMENT.test(html)) return html;
  const page = new DOMParser().parseFromString(html, "text/html");
  const styles = [...page.head.querySelectorAll("style")].map((style) => style.outerHTML);
  return styles.join("") + page.body.innerHTML;
}

/**
 * Take out the style elements of HTML. Those of an SVG image stay in it.
 * @param {DocumentFragment} content
 */
function takeStyles(content) {
  const styles = [...content.querySelectorAll("style")].filter((style) => !style.closest("svg"));
  for (const style of styles) style.remove();
  return styles
    .map((style) => style.textContent)
    .join("\n")
    .trim();
}

/**
 * Refuse HTML that a browser would read in another way after it was written down.
 * @param {HTMLTemplateElement} template
 */
function checkStable(template) {
  const again = document.createElement("template");
  again.innerHTML = template.innerHTML;
  const hidden = removeActiveContent(again.content);
  if (hidden.length) {
    refuse(
      `This HTML hides code from some readers (${hidden.join(", ")}). Send it without that: HTML cannot contain code.`,
    );
  }
}

/**
 * Keep the space between words where a line ends between two inline elements, which GrapesJS drops.
 * @param {DocumentFragment} content
 */
function keepSpacesBetweenWords(content) {
  const walker = document.createTreeWalker(content, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.nodeValue ?? "";
    if (/\S/.test(text) || !text.includes("\n")) continue;
    if (isInline(node.previousSibling) && isInline(node.nextSibling)) node.nodeValue = " ";
  }
}

/** @param {Node | null} node */
function isInline(node) {
  if (!node) return false;
  return node.nodeType === Node.TEXT_NODE || INLINE_TAGS.has(node.nodeName.toLowerCase());
}

/** @param {string[]} names */
function describeLeftOut(names) {
  const scripts = names.filter((name) => name === "script").length;
  const others = [...new Set(names.filter((name) => name !== "script"))].sort();
  const parts = [
    ...(scripts ? [`${scripts} script${scripts > 1 ? "s" : ""}`] : []),
    ...(others.length ? [others.join(", ")] : []),
  ];
  if (!parts.length) return "";
  return `Left out: ${parts.join(" and ")}. HTML cannot contain code; write behaviour with write_code_asset.`;
}
