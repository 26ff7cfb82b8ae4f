/** Parse Markdown in time in proportion to its length, whatever a model or a page's author has written (decision 0285). */

import { Lexer } from "marked";

/** @typedef {Record<string, any>} Token A token of marked. */

const MAX_NESTING = 20;
/** The parser's time for emphasis grows with the third power of its marks in one paragraph, for links with the second. */
const MAX_EMPHASIS_MARKS = 100;
const MAX_OTHER_MARKS = 400;
const EMPHASIS = /[*_]/g;
const OTHER_MARKS = /[~[\]`<]/g;

/** What has more nesting or more marks than people write is text. */
class BoundedLexer extends Lexer {
  #depth = 0;

  /** @type {any} */
  blockTokens = (/** @type {string} */ source, /** @type {any[]} */ tokens = [], /** @type {boolean} */ isClipped) => {
    if (this.#depth >= MAX_NESTING) {
      tokens.push({ type: "text", raw: source, text: source });
      return tokens;
    }
    this.#depth += 1;
    try {
      return super.blockTokens(source, tokens, isClipped);
    } finally {
      this.#depth -= 1;
    }
  };

  /** @type {any} */
  inlineTokens = (/** @type {string} */ source, /** @type {any[]} */ tokens = []) => {
    const isPlain = count(source, EMPHASIS) > MAX_EMPHASIS_MARKS || count(source, OTHER_MARKS) > MAX_OTHER_MARKS;
    if (!isPlain) return super.inlineTokens(source, tokens);
    tokens.push({ type: "text", raw: source, text: source, escaped: false });
    return tokens;
  };
}

/**
 * @param {string} source
 * @returns {Token[]}
 */
export function parseMarkdown(source) {
  return new BoundedLexer().lex(source);
}

/** @param {string} source @param {RegExp} marks */
function count(source, marks) {
  return source.match(marks)?.length ?? 0;
}
