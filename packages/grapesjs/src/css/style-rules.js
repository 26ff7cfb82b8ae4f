import { refuse } from "../tool-error.js";
import { parseCss } from "./parse-css.js";
import { rulesToGrapes } from "./rule-json.js";
import { normalizePrelude, splitOutsideBrackets } from "./tokens.js";

/** @typedef {import("./parse-css.js").SheetRule} SheetRule */
/** @typedef {import("./parse-css.js").Style} Style */
/** @typedef {import("./rule-json.js").RuleJson} RuleJson */
/** @typedef {{key: string, json: RuleJson, text: string, at: number}} StoredRule A rule of the editor, its JSON as a text, its place. */

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
function membersOfRule(rule) {
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

/** @param {any} rule */
function hasDeclarations(rule) {
  for (const _ in rule.attributes.style) return true;
  return false;
}

/** The rules of an editor, read and written as style sheets do. */
export class StyleRules {
  /** @param {any} editor */
  constructor(editor) {
    this.editor = editor;
  }

  /** @param {any} rule */
  keyOf(rule) {
    return keyOfRule(rule);
  }

  /** @returns {any[]} the rules that have declarations */
  all() {
    return this.editor.Css.getAll().models.filter(hasDeclarations);
  }

  /** @returns {Map<string, StoredRule>} by key, in order */
  stored() {
    /** @type {Map<string, StoredRule>} */
    const stored = new Map();
    this.editor.Css.getAll().models.forEach((/** @type {any} */ rule, /** @type {number} */ at) => {
      if (!hasDeclarations(rule)) return;
      const key = keyOfRule(rule);
      const text = JSON.stringify(membersOfRule(rule));
      stored.set(key, { key, json: JSON.parse(text), text, at });
    });
    return stored;
  }

  /** The style sheet as a text, with the rules of classes that no element has. */
  toText() {
    return this.editor.getCss({ avoidProtected: true, keepUnusedStyles: true }) ?? "";
  }

  /**
   * Put rules of a text into the editor. A rule whose selector exists is merged with it, property by property.
   * @param {string} css
   * @param {{replace?: boolean, keep?: boolean}} [options] `replace` existing rules as a whole; `keep` them as they are
   * @returns {{created: number, updated: number, kept: number}}
   */
  put(css, { replace = false, keep = false } = {}) {
    const counts = { created: 0, updated: 0, kept: 0 };
    const rules = parseCss(css);
    if (!rules.length) refuse("There is no CSS rule in this. Send rules like `.name { property: value }`.");
    const animations = new Set();
    const byKey = this.#byKey();
    for (const rule of rules) {
      if (/keyframes$/.test(rule.atRule)) {
        const name = `${rule.atRule} ${rule.params}`;
        const isFirst = !animations.has(name);
        animations.add(name);
        if (isFirst) counts[this.#clearAnimation(rule) ? "updated" : "created"]++;
        this.#putRule(rule, byKey, { replace: true, keep: false });
      } else counts[this.#putRule(rule, byKey, { replace, keep })]++;
    }
    return counts;
  }

  /**
   * Remove an animation, which is replaced as a whole.
   * @param {SheetRule} rule
   */
  #clearAnimation({ atRule, params }) {
    const steps = this.all().filter((one) => one.get("atRuleType") === atRule && one.get("mediaText") === params);
    this.editor.Css.getAll().remove(steps);
    return steps.length > 0;
  }

  /**
   * @param {SheetRule} rule
   * @param {Map<string, any>} byKey the rules that there are; new ones are added
   * @param {{replace: boolean, keep: boolean}} options
   * @returns {"created" | "updated" | "kept"}
   */
  #putRule(rule, byKey, { replace, keep }) {
    /** @type {"created" | "updated" | "kept"} */
    let effect = "updated";
    for (const json of rulesToGrapes(rule)) {
      const key = keyOfJson(json);
      const existing = json.singleAtRule ? undefined : byKey.get(key);
      if (!existing) {
        byKey.set(key, this.editor.Css.addCollection([json])[0]);
        effect = "created";
      } else if (keep) effect = effect === "updated" ? "kept" : effect;
      else
        existing.setStyle(replace ? json.style : mergeStyles(existing.getStyle("", { skipResolve: true }), json.style));
    }
    return effect;
  }

  /** @returns {Map<string, any>} */
  #byKey() {
    return new Map(this.all().map((rule) => [keyOfRule(rule), rule]));
  }

  /**
   * Return the rules of selectors, in whatever at-rule they are. A list of selectors also names each of its parts.
   * @param {string[]} selectors as the style sheet writes them
   */
  matching(selectors) {
    const exact = new Set(selectors.map(normalizePrelude));
    const parts = new Set(selectors.flatMap((one) => splitOutsideBrackets(one, ",")).map(normalizePrelude));
    return this.all().filter((rule) => {
      const own = normalizePrelude(rule.selectorsToString());
      const atRule = normalizePrelude(rule.getAtRule());
      return exact.has(own) || exact.has(atRule) || (parts.has(own) && !/keyframes/.test(atRule));
    });
  }

  /**
   * Remove the rules of selectors.
   * @param {string[]} selectors
   * @returns {string[]} the selectors that have no rule
   */
  remove(selectors) {
    const missing = selectors.filter((selector) => this.matching([selector]).length === 0);
    this.editor.Css.getAll().remove(this.matching(selectors));
    return missing;
  }

  /**
   * Remove properties from the rules of selectors.
   * @param {string[]} selectors
   * @param {string[]} properties
   * @param {(rule: any) => boolean} [condition] which rules to change
   * @returns {number} how many declarations were removed
   */
  removeProperties(selectors, properties, condition = () => true) {
    const names = new Set(properties.map((name) => (name.startsWith("--") ? name : name.toLowerCase())));
    let count = 0;
    for (const rule of this.matching(selectors).filter(condition)) {
      const style = rule.getStyle("", { skipResolve: true });
      const kept = Object.entries(style).filter(([name]) => !names.has(name));
      count += Object.keys(style).length - kept.length;
      if (kept.length === 0) this.editor.Css.getAll().remove(rule);
      else if (kept.length < Object.keys(style).length) rule.setStyle(Object.fromEntries(kept));
    }
    return count;
  }

  /**
   * Copy the rules of one element for its copy.
   * @param {string} id
   * @param {string} newId
   */
  copyIdRules(id, newId) {
    const copies = this.all()
      .map(jsonOfRule)
      .filter(({ selectors, selectorsAdd }) => selectors.length === 1 && selectors[0] === `#${id}` && !selectorsAdd);
    this.editor.Css.addCollection(copies.map((json) => ({ ...json, selectors: [`#${newId}`] })));
  }

  /**
   * Bring rules into a state.
   * @param {{key: string, to: RuleJson | null, at: number}[]} changes `to` is null for no rule; `at` is the place of a new
   *   one
   */
  set(changes) {
    const rules = this.editor.Css.getAll();
    const byKey = changes.length ? this.#byKey() : new Map();
    for (const { key, to, at } of changes) {
      const existing = byKey.get(key);
      if (!to) rules.remove(existing ?? []);
      else if (existing) existing.setStyle(to.style);
      else this.editor.Css.addCollection([to], { at: Math.min(at, rules.length) });
    }
  }
}

/**
 * Set declarations of a rule: existing properties keep their places, new ones follow.
 * @param {Style} existing
 * @param {Style} added
 * @returns {Style}
 */
function mergeStyles(existing, added) {
  /** @type {Style} */
  const merged = { ...existing };
  for (const [name, value] of Object.entries(added)) {
    const [old, values] = [[existing[name] ?? []].flat(), [value].flat()];
    const kept = old.slice(0, Math.max(0, old.length - values.length));
    merged[name] = kept.length ? [...kept, ...values] : value;
  }
  return merged;
}
