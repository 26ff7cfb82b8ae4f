/**
 * Render Markdown that grows, as DOM nodes. No HTML is parsed: what a model writes as HTML is shown as text, and only
 * elements that are made here can appear (decision 0281).
 */

import { parseMarkdown } from "./bounded-lexer.js";

/** @typedef {Record<string, any>} Token A token of marked. */

const SAFE_LINK = /^(?:https?:|mailto:)/i;
const HEADING_LEVEL = { 1: "h3", 2: "h4", 3: "h5", 4: "h6", 5: "h6", 6: "h6" };
const MAX_NESTING = 40;
/** A block that is longer is settled while it is still written, so that no update takes long. */
const MAX_OPEN = 20_000;
const HOST = /^(?:https?:\/\/)?([^\s/?#:]+\.[^\s/?#:.]{2,})(?:[:/?#]|$)/i;
/** Entities that were decoded before. @type {Map<string, string>} */
const ENTITIES = new Map();
const MAX_ENTITIES = 500;

/**
 * Shows a text that is appended to. What is complete is never touched again: blocks, and the items of a list. So an update
 * costs as much as the block or item that is being written.
 */
export class MarkdownView {
  /** Where that begins which may still change. */
  #settled = 0;
  #text = "";
  /** The nodes of what may still change. @type {Node[]} */
  #open = [];
  /** A list whose last item may still change. @type {HTMLElement | null} */
  #list = null;

  /** @param {Element} target The element that is filled. */
  constructor(target) {
    this.target = target;
  }

  /** @param {string} text All of it. */
  update(text) {
    if (text === this.#text) return;
    if (!text.startsWith(this.#text)) this.#startAgain();
    this.#text = text;
    for (const node of this.#open) node.parentNode?.removeChild(node);
    this.#open = [];
    const rest = text.slice(this.#settled);
    const tokens = parseMarkdown(rest);
    const newest = tokens.findLastIndex((token) => token.type !== "space");
    const isLong = tokens[newest]?.type !== "code" && tokens[newest]?.raw.length > MAX_OPEN;
    const last = isLong ? newest + 1 : newest;
    for (const [index, token] of tokens.entries()) this.#show(token, index >= last);
  }

  /** @param {Token} token @param {boolean} isOpen */
  #show(token, isOpen) {
    if (token.type === "list") {
      this.#showList(token, isOpen);
      return;
    }
    if (token.type !== "space") this.#list = null;
    const nodes = renderBlock(token, 0);
    this.target.append(...nodes);
    if (isOpen) this.#open.push(...nodes);
    else this.#settled += token.raw.length;
  }

  /** @param {Token} token @param {boolean} isOpen */
  #showList(token, isOpen) {
    const name = token.ordered ? "OL" : "UL";
    const list =
      this.#list?.tagName === name ? this.#list : /** @type {HTMLElement} */ (renderList({ ...token, items: [] }, 0));
    if (list !== this.#list) this.target.append(list);
    const items = token.items.map((/** @type {Token} */ item) => renderItem(item, 0));
    list.append(...items);
    if (!isOpen) {
      this.#settled += token.raw.length;
      this.#list = null;
      return;
    }
    const complete = token.items
      .slice(0, -1)
      .map((/** @type {Token} */ item) => item.raw)
      .join("");
    const isWhole = items.length > 1 && token.raw.startsWith(complete);
    const hasSettled = isWhole || list === this.#list;
    if (isWhole) this.#settled += complete.length;
    this.#list = hasSettled ? list : null;
    this.#open.push(...(isWhole ? items.slice(-1) : hasSettled ? items : [list]));
  }

  #startAgain() {
    this.target.replaceChildren();
    this.#settled = 0;
    this.#open = [];
    this.#list = null;
  }
}

/**
 * @param {Token} token
 * @param {number} depth
 * @returns {Node[]}
 */
function renderBlock(token, depth) {
  if (depth > MAX_NESTING) return [text(token.raw)];
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "heading":
      return [element(HEADING_LEVEL[/** @type {1} */ (token.depth)] ?? "h6", renderInline(token.tokens, depth))];
    case "paragraph":
      return [element("p", renderInline(token.tokens, depth))];
    case "text":
      return token.tokens ? renderInline(token.tokens, depth) : [text(token.text)];
    case "code":
      return [renderCode(token)];
    case "blockquote":
      return [renderQuote(token, depth)];
    case "list":
      return [renderList(token, depth)];
    case "table":
      return [renderTable(token, depth)];
    case "checkbox":
      return [renderCheckbox(token), text(" ")];
    case "hr":
      return [element("hr", [])];
    default:
      return [element("p", [text(token.raw)])];
  }
}

/** @param {Token[]} tokens @param {number} depth @returns {Node[]} */
function renderBlocks(tokens, depth) {
  return tokens.flatMap((token) => renderBlock(token, depth + 1));
}

/** @param {Token} token */
function renderCode(token) {
  const code = element("code", [text(token.text)]);
  const pre = element("pre", [code]);
  pre.tabIndex = 0; // it scrolls
  return pre;
}

/** @param {Token} token @param {number} depth */
function renderQuote(token, depth) {
  const quote = element("blockquote", renderBlocks(token.tokens, depth));
  quote.dir = "auto";
  return quote;
}

/** @param {Token} token @param {number} depth */
function renderList(token, depth) {
  const items = token.items.map((/** @type {Token} */ item) => renderItem(item, depth));
  const list = element(token.ordered ? "ol" : "ul", items);
  list.dir = "auto"; // the marks stand where its words begin
  if (token.ordered && token.start > 1) list.setAttribute("start", String(token.start));
  return list;
}

/** @param {Token} item @param {number} depth */
function renderItem(item, depth) {
  return element("li", renderBlocks(item.tokens, depth));
}

/** @param {Token} token */
function renderCheckbox(token) {
  const box = document.createElement("input");
  box.type = "checkbox";
  box.disabled = true;
  box.checked = Boolean(token.checked);
  box.setAttribute("aria-label", token.checked ? "done" : "open");
  return box;
}

/** @param {Token} token @param {number} depth */
function renderTable(token, depth) {
  const row = (/** @type {string} */ name, /** @type {Token[]} */ cells) =>
    element(
      "tr",
      cells.map((cell) => element(name, renderInline(cell.tokens, depth))),
    );
  const head = element("thead", [row("th", token.header)]);
  const body = element(
    "tbody",
    token.rows.map((/** @type {Token[]} */ cells) => row("td", cells)),
  );
  const frame = element("div", [element("table", [head, body])]);
  frame.className = "table";
  frame.tabIndex = 0;
  return frame;
}

/** @param {Token[] | undefined} tokens @param {number} depth @returns {Node[]} */
function renderInline(tokens, depth) {
  return (tokens ?? []).flatMap((token) => renderSpan(token, depth + 1));
}

/** @param {Token} token @param {number} depth @returns {Node[]} */
function renderSpan(token, depth) {
  if (depth > MAX_NESTING) return [text(token.raw)];
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      return [element(token.type, renderInline(token.tokens, depth))];
    case "codespan":
      return [element("code", [text(token.text)])];
    case "br":
      return [element("br", [])];
    case "link":
      return [renderLink(token, depth)];
    case "image":
      return [text(token.text || token.href)]; // nothing is loaded from elsewhere
    case "text":
      return token.tokens ? renderInline(token.tokens, depth) : [text(decodeEntities(token.text))];
    case "escape":
      return [text(token.text)];
    default:
      return [text(token.raw)];
  }
}

/** @param {Token} token @param {number} depth */
function renderLink(token, depth) {
  const children = renderInline(token.tokens, depth);
  if (!SAFE_LINK.test(token.href)) return element("span", children);
  const link = /** @type {HTMLAnchorElement} */ (element("a", children));
  link.href = token.href;
  link.title = link.href; // where it really leads: a strange letter shows as `xn--`
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  const named = HOST.exec(link.textContent?.trim() ?? "")?.[1];
  if (named && named.toLowerCase() !== link.hostname && link.hostname !== `www.${named.toLowerCase()}`)
    link.append(` (${link.hostname || link.protocol})`); // its words name another host
  return link;
}

/** @param {string} value */
function decodeEntities(value) {
  return value.replace(/&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});/gi, (entity) => {
    const known = ENTITIES.get(entity);
    if (known !== undefined) return known;
    const holder = document.createElement("textarea");
    holder.innerHTML = entity; // one entity, and nothing else
    if (ENTITIES.size < MAX_ENTITIES) ENTITIES.set(entity, holder.value);
    return holder.value;
  });
}

/** @param {string} name @param {Node[]} children @returns {HTMLElement} */
function element(name, children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

/** @param {string} value */
function text(value) {
  return document.createTextNode(value);
}
