/** Split CSS into tokens, check that its brackets are balanced, and spell selectors in one way. */

import { refuse } from "../tool-error.js";

const TOKEN =
  /\/\*[\s\S]*?(?:\*\/|$)|"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|url\(\s*[^"'()\s][^()]*\)|\\[\s\S]|[\s\S]/gi;
/** @type {Record<string, string>} */
const CLOSING = { "{": "}", "(": ")", "[": "]" };

/**
 * Split CSS into comments, strings, unquoted addresses, escapes and single characters.
 * @param {string} css
 * @returns {string[]}
 */
export function tokenize(css) {
  return css.match(TOKEN) ?? [];
}

/**
 * Refuse CSS that would take in the rules after it, or would end the style element.
 * @param {string} css
 */
export function checkBalanced(css) {
  if (/<\/style/i.test(css)) refuse("CSS must not contain a </style> tag.");
  const expected = [];
  for (const token of tokenize(css)) {
    if (token in CLOSING) expected.push(CLOSING[token]);
    else if (/^[})\]]$/.test(token) && expected.pop() !== token) {
      refuse(`There is a ${token} too many in this CSS. Send complete rules.`);
    } else if (token === '"' || token === "'") {
      refuse("A quoted text in this CSS is not closed. Send complete rules.");
    } else if (token.startsWith("/*") && !(token.length >= 4 && token.endsWith("*/"))) expected.push("*/");
  }
  if (expected.length) refuse(`A ${expected.at(-1)} is missing in this CSS. Send complete rules.`);
}

/**
 * Split at a separator that is outside of brackets and strings.
 * @param {string} text
 * @param {string} separator one character
 * @returns {string[]} parts without white space around them, without empty ones
 */
export function splitOutsideBrackets(text, separator) {
  const parts = [""];
  let depth = 0;
  for (const token of tokenize(text)) {
    if (token.startsWith("/*")) continue;
    if (token === "(" || token === "[") depth++;
    if (token === ")" || token === "]") depth--;
    if (token === separator && depth === 0) parts.push("");
    else parts[parts.length - 1] += token;
  }
  return parts.map((part) => part.trim()).filter(Boolean);
}

const MAX_REMEMBERED = 5_000;
/** @type {Map<string, string>} */
const normalized = new Map();

/**
 * Return a selector or the head of an at-rule in one spelling: white space and comments do not count.
 * @param {string} prelude
 */
export function normalizePrelude(prelude) {
  const known = normalized.get(prelude);
  if (known !== undefined) return known;
  if (normalized.size > MAX_REMEMBERED) normalized.clear();
  const key = normalize(prelude);
  normalized.set(prelude, key);
  return key;
}

/** @param {string} prelude */
function normalize(prelude) {
  /** @type {string[]} */
  const strings = [];
  const keepString = (/** @type {string} */ token) => `\u0001${strings.push(token) - 1}\u0001`;
  const text = tokenize(prelude)
    .filter((token) => !token.startsWith("/*"))
    .map((token) => (/^["']/.test(token) && token.length > 1 ? keepString(token) : token))
    .join("");
  const squeezed = text
    .trim()
    .replace(/\s+/g, " ")
    .replace(/ ?([>+~,]) ?/g, "$1");
  const key = squeezed.startsWith("@") ? squeezed.replace(/ ?([:()]) ?/g, "$1") : squeezed;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the mark stands in no CSS
  return key.replace(/\u0001(\d+)\u0001/g, (_, number) => strings[Number(number)]);
}
