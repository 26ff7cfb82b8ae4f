/** Build the snapshot of a site that is sent with a prompt. */

import { formatColor, parseColor, SHADE_COUNT, variantsOf } from "./tokens/colors.js";
import { GENERIC_FONTS } from "./tokens/fonts.js";
import { customProperties, findScales, rootFontPixels } from "./tokens/properties.js";
import { MAX_SCREEN_PIXELS, MIN_SCREEN_PIXELS } from "./tokens/scales.js";
import { symbolsOf } from "./tools/read-tools.js";

/** @typedef {import("./document.js").EditorDocument} EditorDocument */

const BASE_WIDTH = 1280;
const MAX_PHONE_PIXELS = 599;
const MAX_TABLET_PIXELS = 999;
const COLOR = /^(?:#[0-9a-f]{3,8}|(?:rgb|hsl|hwb|lab|lch|oklab|oklch|color|color-mix)a?\(.*\))$/i;

/**
 * Build the snapshot that a site's editor sends, without the nodes, which the model reads with `read_document`.
 * @param {EditorDocument} document
 */
export function buildSnapshot(document) {
  const pages = document.editor.Pages.getAll().map((/** @type {any} */ page) => describePage(document, page));
  const current = document.currentPage;
  const page = pages.find((/** @type {any} */ one) => one.id === current.getId());
  const selected = document.editor.getSelected();
  return {
    page,
    currentDocument: document.refOf(current),
    site: describeSite(document, pages),
    selectedNodeId: selected ? document.ids.of(selected) : null,
    activeBreakpointId: String(document.editor.getDevice() ?? ""),
  };
}

/**
 * @param {EditorDocument} document
 * @param {any} page
 */
function describePage(document, page) {
  const template = page.get("template");
  return {
    id: page.getId(),
    slug: document.slugOf(page),
    title: document.titleOf(page),
    rootNodeId: document.ids.of(page.getMainComponent()),
    nodes: {},
    ...(template ? { template } : {}),
  };
}

/**
 * @param {EditorDocument} document
 * @param {any[]} pages
 */
function describeSite(document, pages) {
  const folders = { expandedFolders: [], emptyFolders: [], rowOrder: [] };
  const items = { folders: [], items: [] };
  return {
    id: pages[0].id,
    name: pages[0].title,
    breakpoints: describeBreakpoints(document.editor),
    settings: describeSettings(document, pages[0]),
    styleRules: {},
    files: [],
    explorer: { pages: folders, styles: folders, scripts: folders, templates: items, components: items },
    packageJson: { dependencies: {}, devDependencies: {} },
    runtime: { dependencyLock: { version: 1, packages: {}, updatedAt: 0 }, scripts: {}, styles: {} },
    createdAt: 0,
    updatedAt: 0,
    pages,
    visualComponents: symbolsOf(document).map((main) => describeSymbol(document, main)),
    layouts: [],
  };
}

/**
 * @param {EditorDocument} document
 * @param {any} main
 */
function describeSymbol(document, main) {
  const id = document.ids.of(main);
  return {
    id,
    name: main.getName() || id,
    tree: { nodes: {}, rootNodeId: id },
    params: [],
    classIds: [],
    createdAt: 0,
  };
}

/** @param {any} editor */
export function describeBreakpoints(editor) {
  return editor.Devices.getAll().models.map((/** @type {any} */ device) => {
    const media = device.get("widthMedia");
    const width = Number.parseInt(media || device.get("width"), 10) || BASE_WIDTH;
    const icon = width <= MAX_PHONE_PIXELS ? "smartphone" : width <= MAX_TABLET_PIXELS ? "tablet" : "monitor";
    const condition = editor.getConfig().mediaCondition || "max-width";
    const mediaQuery = media ? { mediaQuery: `(${condition}: ${media})` } : {};
    return { id: String(device.id), label: device.getName(), width, ...mediaQuery, icon: media ? icon : "monitor" };
  });
}

/**
 * @param {EditorDocument} document
 * @param {any} page
 */
function describeSettings(document, page) {
  const language = document.body.docEl?.get("attributes")?.lang;
  const framework = describeFramework(document);
  const fonts = fontTokens(document);
  return {
    shortcuts: {},
    metaTitle: page.title,
    ...(language ? { language } : {}),
    ...(Object.keys(framework).length ? { framework } : {}),
    ...(fonts.length ? { fonts: { items: [], tokens: fonts } } : {}),
  };
}

/**
 * @param {EditorDocument} document
 * @returns {Record<string, any>}
 */
function describeFramework(document) {
  /** @type {Record<string, any>} */
  const framework = {};
  const tokens = colorTokens(customProperties(document), customProperties(document, { dark: true }));
  if (tokens.length) framework.colors = { tokens };
  for (const scale of findScales(document)) {
    framework[scale.family] ??= { groups: [] };
    const { groups } = framework[scale.family];
    groups.push(scaleGroup(scale, groups.length));
  }
  if (!Object.keys(framework).length) return framework;
  const screens = { minScreenWidth: MIN_SCREEN_PIXELS, maxScreenWidth: MAX_SCREEN_PIXELS };
  return { ...framework, preferences: { rootFontSize: rootFontPixels(document), ...screens, isRem: true } };
}

/**
 * Return a token for each colour but those that are variants of another one.
 * @param {Map<string, string>} light
 * @param {Map<string, string>} dark
 */
function colorTokens(light, dark) {
  const colors = new Map([...light].filter(([, value]) => COLOR.test(value)));
  const variants = new Map([...colors].map(([name, value]) => [name, existingVariants(name, value, colors)]));
  const derived = new Set([...variants].flatMap(([name, own]) => own.map((variant) => `${name}-${variant}`)));
  const names = [...colors.keys()].filter((name) => !derived.has(name));
  return names.map((name, order) => {
    const own = variants.get(name) ?? [];
    const darkValue = dark.get(name);
    return {
      id: name,
      slug: name.slice(2),
      lightValue: colors.get(name),
      ...(darkValue ? { darkValue } : {}),
      darkModeEnabled: Boolean(darkValue),
      generateUtilities: { text: false, background: false, border: false, fill: false },
      generateTransparent: own.includes("5"),
      generateShades: { enabled: own.includes("d-1"), count: SHADE_COUNT },
      generateTints: { enabled: own.includes("l-1"), count: SHADE_COUNT },
      order,
    };
  });
}

/**
 * Return the variants of a colour, by families (shades, tints, transparent) that are there completely.
 * @param {string} name
 * @param {string} value
 * @param {Map<string, string>} colors
 * @returns {string[]}
 */
function existingVariants(name, value, colors) {
  const color = parseColor(value);
  if (!color) return [];
  const all = variantsOf(color);
  const families = ["d-", "l-", ""].map((prefix) =>
    all.filter(([variant]) => (prefix ? variant.startsWith(prefix) : /^\d/.test(variant))),
  );
  const isThere = (/** @type {[string, any]} */ [variant, shade]) =>
    colors.get(`${name}-${variant}`) === formatColor(shade);
  return families.filter((family) => family.every(isThere)).flatMap((family) => family.map(([variant]) => variant));
}

/**
 * @param {import("./tokens/properties.js").PageScale} scale
 * @param {number} order
 */
function scaleGroup({ naming, sizes }, order) {
  return {
    id: naming,
    name: naming,
    namingConvention: naming,
    mode: "fluid_manual",
    steps: [...sizes.keys()].join(","),
    manualSizes: [...sizes].map(([step, [min, max]]) => ({ name: `${naming}-${step}`, min, max })),
    order,
  };
}

/** @param {EditorDocument} document */
function fontTokens(document) {
  const fonts = [...customProperties(document)].filter(([name]) => name.startsWith("--font-"));
  return fonts
    .map(([name, value], order) => ({
      id: name,
      name: name.slice(2),
      variable: name,
      family: "",
      fallback: value,
      order,
    }))
    .filter(({ fallback }) => /,|^["']/.test(fallback) || GENERIC_FONTS.includes(fallback));
}
