/** Parse the CSS that a model writes into rules that the editor can keep. */

import { refuse } from "../tool-error.js";
import { checkBalanced, splitOutsideBrackets, tokenize } from "./tokens.js";

/**
 * A rule as a style sheet writes it, with nesting resolved.
 * @typedef {object} SheetRule
 * @property {string} selector empty for a rule without selectors, such as that of a font; a step in keyframes
 * @property {Style} style
 * @property {string} atRule name of the at-rule around it, such as `media`; empty for none
 * @property {string} params what follows that name
 * @property {boolean} isSingle the at-rule holds declarations itself, as that of a font does
 */
/** @typedef {Record<string, string | string[]>} Style A list holds fallbacks of one property. */
/** @typedef {{head: string, body?: string}} Statement */
/** @typedef {{atRule: string, params: string}} Condition */

const SINGLE_AT_RULES = ["font-face", "page", "property", "counter-style", "font-palette-values"];
const CONDITIONS = ["media", "supports", "container", "layer"];
const MAX_DEPTH = 50;
const NO_CONDITION = { atRule: "", params: "" };

/**
 * Parse a style sheet without the browser's object model, which drops shorthands with `var()` (decision 0273).
 * @param {string} css
 * @param {{onRefusal?: (message: string) => void}} [options] `onRefusal` skips what cannot be kept, and goes on
 * @returns {SheetRule[]}
 * @throws {import("../tool-error.js").ToolError} for CSS that the editor cannot keep, without `onRefusal`
 */
export function parseCss(css, { onRefusal } = {}) {
  if (!onRefusal) checkBalanced(css);
  /**
   * @template T
   * @param {() => T[]} read
   * @returns {T[]}
   */
  const attempt = (read) => {
    try {
      return read();
    } catch (error) {
      if (!onRefusal) throw error;
      onRefusal(/** @type {Error} */ (error).message);
      return [];
    }
  };
  const statements = attempt(() => splitStatements(css));
  return statements.flatMap((statement) => attempt(() => rulesFromStatement(statement, NO_CONDITION, "")));
}

/**
 * @param {string} css
 * @returns {Statement[]}
 */
function splitStatements(css) {
  /** @type {Statement[]} */
  const statements = [];
  let head = "";
  /** @type {string | null} */
  let body = null;
  let braces = 0;
  let brackets = 0;
  const add = (/** @type {Statement} */ statement) => {
    if (statement.head || statement.body !== undefined) statements.push(statement);
    head = "";
    body = null;
  };
  for (const token of tokenize(css)) {
    if (token.startsWith("/*")) continue;
    if (body !== null) {
      if (token === "{" && ++braces > MAX_DEPTH)
        refuse(`The blocks of this CSS lie more than ${MAX_DEPTH} deep in each other.`);
      if (token === "}" && --braces === 0) add({ head: head.trim(), body });
      else body += token;
      continue;
    }
    if (token === "(" || token === "[") brackets++;
    if (token === ")" || token === "]") brackets--;
    if (token === "{" && brackets <= 0 && !isCustomProperty(head)) [body, braces] = ["", 1];
    else if (token === ";" && brackets <= 0) add({ head: head.trim() });
    else head += token;
  }
  add(body === null ? { head: head.trim() } : { head: head.trim(), body });
  return statements;
}

/** @param {string} head */
function isCustomProperty(head) {
  return /^\s*--[\w-]+\s*:/.test(head);
}

/**
 * @param {Statement} statement
 * @param {Condition} condition
 * @param {string} outer the selector that the statement is nested in
 * @returns {SheetRule[]}
 */
function rulesFromStatement({ head, body }, condition, outer) {
  const at = /^@([\w-]+)\s*([\s\S]*)$/.exec(head);
  if (body === undefined) {
    if (at?.[1] === "charset") return [];
    return refuse(at ? describeRefusedStatement(at[1]) : `This is not a CSS rule: ${head.slice(0, 60)}`);
  }
  if (!at) return styleRules(body, condition, nestedSelector(outer, head));
  const [name, params] = [at[1].toLowerCase(), at[2].replace(/\s+/g, " ").trim()];
  if (SINGLE_AT_RULES.includes(name)) {
    const style = readDeclarations(splitStatements(body));
    return [{ selector: "", style, atRule: name, params, isSingle: true }];
  }
  if (/keyframes$/.test(name)) return keyframeRules(name, params, body, condition);
  return styleRules(body, innerCondition(name, params, condition), outer);
}

/** @param {string} name */
function describeRefusedStatement(name) {
  if (name === "import") {
    return "@import cannot be kept in this editor. Load a font with set_font_tokens, and send the rules themselves.";
  }
  return `@${name} without a block cannot be kept in this editor. Leave it out.`;
}

/**
 * @param {string} name
 * @param {string} params
 * @param {Condition} outer
 * @returns {Condition}
 */
function innerCondition(name, params, outer) {
  if (!CONDITIONS.includes(name)) refuse(`@${name} cannot be kept in this editor. Write the rule without it.`);
  if (!outer.atRule) return { atRule: name, params };
  if (name === "media" && outer.atRule === "media") return { atRule: name, params: `${outer.params} and ${params}` };
  return refuse(`@${name} within @${outer.atRule} cannot be kept in this editor. Use one of them.`);
}

/**
 * @param {string} name
 * @param {string} params
 * @param {string} body
 * @param {Condition} condition
 * @returns {SheetRule[]}
 */
function keyframeRules(name, params, body, condition) {
  if (condition.atRule)
    refuse(`@keyframes within @${condition.atRule} cannot be kept in this editor. Put them outside.`);
  return splitStatements(body).map((step) => ({
    selector: step.head.replace(/\s+/g, ""),
    style: readDeclarations(splitStatements(step.body ?? "")),
    atRule: name,
    params,
    isSingle: false,
  }));
}

/**
 * Return the rule of a block, then those that are nested in it.
 * @param {string} body
 * @param {Condition} condition
 * @param {string} selector empty for the content of a conditional group
 * @returns {SheetRule[]}
 */
function styleRules(body, condition, selector) {
  const statements = splitStatements(body);
  const isDeclaration = (/** @type {Statement} */ one) => one.body === undefined && !one.head.startsWith("@");
  const declarations = statements.filter(isDeclaration);
  if (declarations.length && !selector) refuse(`This is not a CSS rule: ${declarations[0].head.slice(0, 60)}`);
  const style = readDeclarations(declarations);
  const inner = statements.filter((one) => !isDeclaration(one));
  const own =
    selector && (declarations.length || !inner.length) ? [{ selector, style, ...condition, isSingle: false }] : [];
  return [...own, ...inner.flatMap((one) => rulesFromStatement(one, condition, selector))];
}

/**
 * @param {Statement[]} statements
 * @returns {Style}
 */
function readDeclarations(statements) {
  /** @type {Style} */
  const style = {};
  for (const { head, body } of statements) {
    const colon = head.indexOf(":");
    if (colon < 1 || body !== undefined) refuse(`This is not a CSS declaration: ${head.slice(0, 60)}`);
    const name = head.slice(0, colon).trim();
    const key = name.startsWith("--") ? name : name.toLowerCase();
    const value = head.slice(colon + 1).trim();
    style[key] = key in style ? [style[key], value].flat() : value;
  }
  return style;
}

/**
 * @param {string} outer
 * @param {string} selector
 */
function nestedSelector(outer, selector) {
  if (!outer) return selector;
  const parent = splitOutsideBrackets(outer, ",").length > 1 ? `:is(${outer})` : outer;
  return splitOutsideBrackets(selector, ",")
    .map((part) => (part.includes("&") ? part.replaceAll("&", parent) : `${parent} ${part}`))
    .join(", ");
}
