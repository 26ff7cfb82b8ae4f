/** Turn parsed rules into the JSON of which GrapesJS makes rules. */

import { splitOutsideBrackets } from "./tokens.js";

/** @typedef {import("./parse-css.js").SheetRule} SheetRule */
/** @typedef {Record<string, any>} RuleJson A rule as GrapesJS stores it. */

const CLASS = "(?:\\.(?:[\\w-]|[^\\x00-\\x7f])+)";
const SIMPLE_SELECTOR = new RegExp(`^(${CLASS}+|#[\\w-]+)(?:(:{1,2}[\\w-]+(?:\\([\\w+-]*\\))?))?$`);

/**
 * Return rules of GrapesJS for a rule of a style sheet: one for each part of its selector that the style manager can
 * edit (classes or an id, with one state), and one for all others.
 * @param {SheetRule} rule
 * @returns {RuleJson[]}
 */
export function rulesToGrapes({ selector, style, atRule, params, isSingle }) {
  const at = atRule ? { atRuleType: atRule, mediaText: params, ...(isSingle ? { singleAtRule: true } : {}) } : {};
  if (isSingle) return [{ selectors: [], ...(params ? { selectorsAdd: params } : {}), style, ...at }];
  if (/keyframes$/.test(atRule)) return [{ selectors: [], selectorsAdd: selector, style, ...at }];
  /** @type {RuleJson[]} */
  const rules = [];
  const others = [];
  for (const part of splitOutsideBrackets(selector, ",")) {
    const simple = SIMPLE_SELECTOR.exec(part);
    if (simple) rules.push({ ...simpleRule(simple), style, ...at });
    else others.push(part);
  }
  if (others.length) rules.push({ selectors: [], selectorsAdd: others.join(", "), style, ...at });
  return rules;
}

/**
 * @param {RegExpExecArray} match
 * @returns {RuleJson}
 */
function simpleRule([, name, state]) {
  const selectors = name.startsWith("#") ? [name] : name.split(".").filter(Boolean);
  return { selectors, ...(state ? { state: state.slice(1) } : {}) };
}
