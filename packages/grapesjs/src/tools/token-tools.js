/** The tools that set tokens of colours and fonts. */

import { formatColor, parseColor, variantsOf } from "../tokens/colors.js";
import { fontStack, fontVariable, GENERIC_FONTS, slugify } from "../tokens/fonts.js";
import { customProperties, isDarkRule, setCustomProperties } from "../tokens/properties.js";
import { refuse } from "../tool-error.js";
import { optionalText, requiredObjects, requiredText, requiredTexts } from "./arguments.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/edit.js").Edit} Edit */
/** @typedef {import("./arguments.js").ToolInput} ToolInput */

const GOOGLE_FONTS = "https://fonts.googleapis.com/css2";

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export function setColorTokens(document, input) {
  const existing = customProperties(document);
  const [light, dark] = [new Map(), new Map()];
  const lightOnly = [];
  const reports = [];
  for (const token of requiredObjects(input, "tokens")) {
    const slug = slugify(requiredText(token, "slug")) || "color";
    const name = `--${slug}`;
    const lightValue = readColor(token, "lightValue");
    const darkValue = token.darkValue ? readColor(token, "darkValue") : "";
    const isNew = !existing.has(name);
    addProperties(light, name, lightValue, existing);
    if (darkValue && token.darkModeEnabled !== false) {
      addProperties(dark, name, darkValue, isNew ? new Map([...existing, ...light]) : existing);
    } else if (token.darkModeEnabled === false) lightOnly.push(name);
    reports.push({ slug, ref: `var(${name})`, action: isNew ? "created" : "updated" });
  }
  setCustomProperties(document, light, dark);
  removeDarkValues(document, lightOnly);
  return { tokens: reports };
}

/**
 * Add the properties of a colour. A new one gets all variants, an existing one keeps those it has.
 * @param {Map<string, string>} properties
 * @param {string} name
 * @param {string} value
 * @param {Map<string, string>} existing
 */
function addProperties(properties, name, value, existing) {
  const color = parseColor(value);
  const all = color ? variantsOf(color).map(([variant, shade]) => [`${name}-${variant}`, formatColor(shade)]) : [];
  const variants = existing.has(name) ? all.filter(([variant]) => existing.has(variant)) : all;
  const isDerived = color && (variants.length > 0 || !existing.has(name));
  properties.set(name, isDerived ? formatColor(color) : value);
  for (const [variant, shade] of variants) properties.set(variant, shade);
}

/**
 * @param {EditorDocument} document
 * @param {string[]} names of colours without a value for dark screens
 */
function removeDarkValues(document, names) {
  const isOf = (/** @type {string} */ property) =>
    names.some((name) => property.startsWith(name) && /^(-\d+|-[dl]-\d+)?$/.test(property.slice(name.length)));
  const removed = [...customProperties(document, { dark: true }).keys()].filter(isOf);
  if (removed.length) document.rules.removeProperties([":root", "html"], removed, isDarkRule);
}

/**
 * @param {ToolInput} token
 * @param {string} name
 */
function readColor(token, name) {
  const value = requiredText(token, name).replace(/\s+/g, " ").trim();
  const isOpen = value.split("(").length !== value.split(")").length;
  if (!value || /[;{}<>\\]|\/\*/.test(value) || isOpen) {
    refuse(`\`${name}\` must be one CSS colour, such as #2563eb or oklch(0.6 0.2 250), not “${value}”.`);
  }
  return value;
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function setFontTokens(document, input, edit) {
  const existing = customProperties(document);
  const properties = new Map();
  const reports = [];
  const loaded = [];
  for (const token of requiredObjects(input, "tokens")) {
    const name = requiredText(token, "name");
    const variable = fontVariable(optionalText(token, "variable") || name);
    if (!variable) refuse(`There is no CSS name in “${name}”. Send a \`variable\` of letters, such as font-heading.`);
    const property = `--${variable}`;
    const family = googleFamily(token);
    const fallback = optionalText(token, "fallback") || genericFallback(existing.get(property) ?? "");
    properties.set(property, fontStack(family, fallback));
    reports.push({ name, variable, ref: `var(${property})`, action: existing.has(property) ? "updated" : "created" });
    if (family) loaded.push(token);
  }
  setCustomProperties(document, properties);
  for (const token of loaded) loadGoogleFont(document, edit, token);
  const note = loaded.length ? { note: "The page loads the font from fonts.googleapis.com when it is opened." } : {};
  return { tokens: reports, ...note };
}

/** @param {ToolInput} token */
function googleFamily(token) {
  const family = optionalText(token, "googleFamily").trim();
  if (!family && token.familyId) {
    refuse("This editor has no installed fonts. Send googleFamily, or a fallback of fonts that every system has.");
  }
  if (family && !/^[A-Za-z0-9 ]+$/.test(family)) refuse(`“${family}” is not the name of a Google font.`);
  return family;
}

/** @param {string} stack */
function genericFallback(stack) {
  const last = stack.split(",").at(-1)?.trim() ?? "";
  return GENERIC_FONTS.includes(last) ? last : "";
}

/**
 * Add the link that loads a font to the heads of all pages, unless they have it.
 * @param {EditorDocument} document
 * @param {Edit} edit
 * @param {ToolInput} token
 */
function loadGoogleFont(document, edit, token) {
  const axes = token.variants ? axesOf(requiredTexts(token, "variants")) : "";
  const family = encodeURIComponent(googleFamily(token)).replaceAll("%20", "+");
  const href = `${GOOGLE_FONTS}?family=${family}${axes}&display=swap`;
  for (const page of document.editor.Pages.getAll()) {
    const { head } = page.getMainComponent();
    const links = head.components().models;
    if (links.some((/** @type {any} */ one) => one.attributes.attributes?.href === href)) continue;
    const json = { tagName: "link", attributes: { rel: "stylesheet", href } };
    edit.apply({ op: "insert", parent: document.ids.of(head), at: { index: links.length }, json });
  }
}

/**
 * Return variants as axes of an address: `["regular", "700italic"]` is `:ital,wght@0,400;1,700`.
 * @param {string[]} variants
 */
function axesOf(variants) {
  const axes = variants.map((one) => [one.includes("italic") ? 1 : 0, Number(/\d+/.exec(one)?.[0] ?? 400)]);
  axes.sort(([italic, weight], [otherItalic, otherWeight]) => italic - otherItalic || weight - otherWeight);
  if (axes.some(([italic]) => italic))
    return `:ital,wght@${[...new Set(axes.map((axis) => axis.join(",")))].join(";")}`;
  return `:wght@${[...new Set(axes.map(([, weight]) => weight))].join(";")}`;
}
