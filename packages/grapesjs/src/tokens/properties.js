/** Read and set the custom properties of a page, for light and for dark screens. */

import { splitOutsideBrackets } from "../css/tokens.js";
import { parseFluidLength } from "./scales.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {{family: "typography" | "spacing", naming: string, sizes: Map<string, [number, number]>}} PageScale */

const ROOT_SELECTORS = [":root", "html"];
const DEFAULT_ROOT_PIXELS = 16;
const NAMINGS = {
  typography: ["text", "font-size", "fs", "type", "step"],
  spacing: ["space", "spacing", "gap", "spacer"],
};
const LENGTH = /^(?:((?:\d+(?:\.\d+)?|\.\d+))(rem|px)|0)$/i;

/** @param {any} rule */
export function isRootRule(rule) {
  return splitOutsideBrackets(rule.selectorsToString(), ",").some((part) => ROOT_SELECTORS.includes(part));
}

/** @param {any} rule */
export function isDarkRule(rule) {
  return rule.getAtRule().replace(/\s/g, "") === "@media(prefers-color-scheme:dark)";
}

/**
 * @param {EditorDocument} document
 * @param {{dark?: boolean}} [options]
 */
export function rootRules(document, { dark = false } = {}) {
  return document.rules.all().filter((rule) => isRootRule(rule) && (dark ? isDarkRule(rule) : !rule.getAtRule()));
}

/**
 * Return the custom properties of the root element. The last value of each is the one that applies.
 * @param {EditorDocument} document
 * @param {{dark?: boolean}} [options]
 * @returns {Map<string, string>}
 */
export function customProperties(document, options) {
  const properties = new Map();
  for (const rule of rootRules(document, options)) {
    for (const [name, value] of Object.entries(rule.getStyle("", { skipResolve: true }))) {
      if (name.startsWith("--")) properties.set(name, String([value].flat().at(-1)));
    }
  }
  return properties;
}

/**
 * Set custom properties in the rules that define them; new ones in `:root`.
 * @param {EditorDocument} document
 * @param {Map<string, string>} light
 * @param {Map<string, string>} [dark] on dark screens
 */
export function setCustomProperties(document, light, dark = new Map()) {
  /** @type {Map<string, string>} */
  const blocks = new Map();
  for (const [name, value] of light) {
    const defining = rootRules(document).findLast((rule) => name in rule.getStyle("", { skipResolve: true }));
    const selector = defining?.selectorsToString() ?? ":root";
    blocks.set(selector, `${blocks.get(selector) ?? ""}${name}: ${value};`);
  }
  const rules = [...blocks].map(([selector, declarations]) => `${selector} {${declarations}}`);
  if (dark.size) {
    const declarations = [...dark].map(([name, value]) => `${name}: ${value};`).join("");
    rules.push(`@media (prefers-color-scheme: dark) {:root {${declarations}}}`);
  }
  if (rules.length) document.rules.put(rules.join("\n"));
}

/**
 * Return the size of 1rem on this site.
 * @param {EditorDocument} document
 */
export function rootFontPixels(document) {
  const sizes = rootRules(document)
    .map((rule) => rule.getStyle("", { skipResolve: true })["font-size"])
    .filter(Boolean);
  const match = /^((?:\d+(?:\.\d+)?|\.\d+))(%|px)$/.exec(String([sizes.at(-1) ?? ""].flat().at(-1)).trim());
  if (!match || !Number(match[1])) return DEFAULT_ROOT_PIXELS;
  return Number(match[1]) * (match[2] === "%" ? DEFAULT_ROOT_PIXELS / 100 : 1);
}

/**
 * Return groups of two or more lengths whose names differ in the last word, as `--space-s` and `--space-m`.
 * @param {EditorDocument} document
 * @returns {PageScale[]}
 */
export function findScales(document) {
  /** @type {Map<string, PageScale>} */
  const scales = new Map();
  for (const family of /** @type {const} */ (["typography", "spacing"])) {
    for (const naming of NAMINGS[family]) scales.set(naming, { family, naming, sizes: new Map() });
  }
  const rootPixels = rootFontPixels(document);
  for (const [name, value] of customProperties(document)) {
    const match = /^--([a-z][a-z-]*?)-([a-z0-9]+)$/.exec(name);
    const range = match && sizeRange(value.trim(), rootPixels);
    if (match && range) scales.get(match[1])?.sizes.set(match[2], range);
  }
  return [...scales.values()].filter(({ sizes }) => sizes.size > 1);
}

/**
 * @param {string} value
 * @param {number} rootPixels
 * @returns {[number, number] | undefined} pixels on the narrowest and on the widest screens
 */
function sizeRange(value, rootPixels) {
  const exact = parseFluidLength(value, rootPixels);
  if (exact) return exact;
  const clamp = /^clamp\(\s*([^,]+),(.+),\s*([^,]+)\)$/i.exec(value);
  const sizes = (clamp ? [clamp[1], clamp[3]] : [value, value]).map((text) => lengthInPixels(text.trim(), rootPixels));
  return sizes[0] === undefined || sizes[1] === undefined ? undefined : [sizes[0], sizes[1]];
}

/**
 * @param {string} text
 * @param {number} rootPixels
 */
function lengthInPixels(text, rootPixels) {
  const match = LENGTH.exec(text);
  if (!match) return undefined;
  return Number(match[1] ?? 0) * (match[2]?.toLowerCase() === "rem" ? rootPixels : 1);
}
