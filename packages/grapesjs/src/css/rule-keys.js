/** Tell rules of the editor apart: by their at-rules and selectors. */

import { normalizePrelude } from "./tokens.js";

/** @typedef {import("./rule-json.js").RuleJson} RuleJson */

const STORED_MEMBERS = [
  "selectors",
  "selectorsAdd",
  "state",
  "style",
  "atRuleType",
  "mediaText",
  "singleAtRule",
  "important",
];

/**
 * Return what tells a rule of the editor from others: its at-rule and its selector.
 * @param {any} rule
 */
export function keyOfRule(rule) {
  const { singleAtRule, style } = rule.attributes;
  const own = singleAtRule ? `|${JSON.stringify(style)}` : "";
  return `${normalizePrelude(rule.getAtRule())}|${normalizePrelude(rule.selectorsToString())}${own}`;
}

/**
 * Return the key of a rule that the editor would make of JSON.
 * @param {RuleJson} json
 */
export function keyOfJson(json) {
  const at = json.atRuleType ? `@${json.atRuleType}${json.mediaText ? ` ${json.mediaText}` : ""}` : "";
  const simple = json.selectors.map((/** @type {string} */ name) =>
    name.startsWith("#") ? name : `.${CSS.escape(name)}`,
  );
  const own = simple.length ? `${simple.join("")}${json.state ? `:${json.state}` : ""}` : "";
  const text = [own, json.selectorsAdd ?? ""].filter(Boolean).join(", ");
  return `${normalizePrelude(at)}|${normalizePrelude(text)}${json.singleAtRule ? `|${JSON.stringify(json.style)}` : ""}`;
}

/**
 * Return the JSON of a rule, from which the editor can make it again.
 * @param {any} rule
 * @returns {RuleJson}
 */
export function jsonOfRule(rule) {
  return JSON.parse(JSON.stringify(membersOfRule(rule)));
}

/**
 * @param {any} rule
 * @returns {RuleJson}
 */
export function membersOfRule(rule) {
  const { attributes } = rule;
  const selectors = rule.getSelectors().models.map((/** @type {any} */ one) => {
    const name = one.get("name");
    return one.isId() ? `#${name}` : name;
  });
  /** @type {RuleJson} */
  const json = {};
  for (const name of STORED_MEMBERS) {
    const value = name === "selectors" ? selectors : attributes[name];
    if (value && (name === "selectors" || name === "style" || value.length !== 0)) json[name] = value;
  }
  return { ...json, style: rule.getStyle("", { skipResolve: true }) };
}
