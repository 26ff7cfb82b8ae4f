/** Read and write the rules of an editor as style sheets do. */

import { refuse } from "../tool-error.js";
import { parseCss } from "./parse-css.js";
import { rulesToGrapes } from "./rule-json.js";
import { jsonOfRule, keyOfJson, keyOfRule, membersOfRule } from "./rule-keys.js";
import { normalizePrelude, splitOutsideBrackets } from "./tokens.js";

/** @typedef {import("./parse-css.js").SheetRule} SheetRule */
/** @typedef {import("./parse-css.js").Style} Style */
/** @typedef {import("./rule-json.js").RuleJson} RuleJson */
/** @typedef {{key: string, json: RuleJson, text: string, at: number}} StoredRule A rule of the editor, its JSON as a text, its place. */

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
    const places = new Map(
      this.editor.Css.getAll().models.map((/** @type {any} */ rule, /** @type {number} */ at) => [rule, at]),
    );
    for (const [key, rule] of this.#byKey()) {
      const text = JSON.stringify(membersOfRule(rule));
      stored.set(key, { key, json: JSON.parse(text), text, at: places.get(rule) });
    }
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
    const byKey = this.#byKey();
    for (const rule of rules.filter(({ atRule }) => !isAnimation(atRule))) {
      counts[this.#putRule(rule, byKey, { replace, keep })]++;
    }
    for (const steps of groupAnimations(rules)) counts[this.#putAnimation(steps, byKey)]++;
    return counts;
  }

  /**
   * Put an animation, which replaces one of its name as a whole.
   * @param {SheetRule[]} steps
   * @param {Map<string, any>} byKey
   * @returns {"created" | "updated"}
   */
  #putAnimation(steps, byKey) {
    const [{ atRule, params }] = steps;
    const old = this.all().filter((one) => one.get("atRuleType") === atRule && one.get("mediaText") === params);
    const keys = new Set(steps.flatMap(rulesToGrapes).map(keyOfJson));
    for (const step of steps) this.#putRule(step, byKey, { replace: true, keep: false });
    this.editor.Css.getAll().remove(old.filter((one) => !keys.has(keyOfRule(one))));
    return old.length ? "updated" : "created";
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
      const existing = byKey.get(key);
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
    const byKey = new Map();
    for (const rule of this.all()) {
      let key = keyOfRule(rule);
      // the same font may be there twice
      while (byKey.has(key)) key += "+";
      byKey.set(key, rule);
    }
    return byKey;
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
   * Name the rules of an element's id after another one.
   * @param {string} id
   * @param {string} newId
   */
  renameId(id, newId) {
    if (id === newId) return;
    for (const rule of this.matching([`#${id}`])) {
      const selectors = rule.getSelectors().models;
      if (selectors.length === 1 && selectors[0].isId()) selectors[0].set({ name: newId, label: newId });
    }
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

/** @param {string} atRule */
function isAnimation(atRule) {
  return /keyframes$/.test(atRule);
}

/**
 * @param {SheetRule[]} rules
 * @returns {SheetRule[][]} the steps of each animation
 */
function groupAnimations(rules) {
  /** @type {Map<string, SheetRule[]>} */
  const animations = new Map();
  for (const rule of rules) {
    const name = `${rule.atRule} ${rule.params}`;
    if (isAnimation(rule.atRule)) animations.set(name, [...(animations.get(name) ?? []), rule]);
  }
  return [...animations.values()];
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
