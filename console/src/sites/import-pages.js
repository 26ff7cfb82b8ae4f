/** Read pages from files. */

import { formatMegabytes } from "../format.js";
import { words } from "../words/index.js";
import { decodeText } from "./decode-text.js";

/**
 * What a folder or a file brings: its pages, with the style sheets and pictures of the folder put into them.
 *
 * @typedef {{name: string, pages: {name: string, html: string}[]}} ImportedSite
 */

const MAX_PICTURE_BYTES = 2_000_000;
const MAX_PAGE_BYTES = 5_000_000;
/** Of style sheets that import each other. */
const MAX_IMPORT_DEPTH = 5;
const IMPORT = /@import\s+(?:url\(\s*)?(["']?)([^"')\s;]+)\1\s*\)?\s*([^;]*);/gi;
const ADDRESS = /url\(\s*(["']?)([^"')]+)\1\s*\)/gi;

/** @typedef {Map<string, File>} Folder The files by their paths. */

/** @param {File} file @returns {Promise<ImportedSite>} */
export async function importFile(file) {
  const html = await readPage(file);
  return { name: titleOf(html) || baseName(file.name), pages: [{ name: baseName(file.name), html }] };
}

/**
 * Read the HTML files of a folder. `index.html` comes first.
 *
 * @param {File[]} files
 * @returns {Promise<ImportedSite>}
 */
export async function importFolder(files) {
  const byPath = new Map(files.map((file) => [pathOf(file), file]));
  const paths = [...byPath.keys()].filter((path) => /\.html?$/i.test(path)).sort(byIndexFirst);
  if (!paths.length) throw new Error(words.sites.noHtml);
  const pages = [];
  for (const path of paths) {
    const file = /** @type {File} */ (byPath.get(path));
    pages.push({ name: baseName(file.name), html: await inlineFiles(await readPage(file), path, byPath) });
  }
  return { name: titleOf(pages[0].html) || words.sites.importedName, pages };
}

/** @param {File} file */
async function readPage(file) {
  if (file.size > MAX_PAGE_BYTES) throw new Error(words.sites.tooLarge(file.name, formatMegabytes(MAX_PAGE_BYTES)));
  const text = decodeText(new Uint8Array(await file.arrayBuffer()));
  if (text.includes("\0")) throw new Error(words.sites.noText(file.name));
  return withoutOrders(text);
}

/** What of a page is an order to the window that shows it, which is the editor's canvas: to leave it, or to change its policy. */
const ORDERS = "base, meta[http-equiv]:not([http-equiv=content-type i])";

/**
 * Take out of a page what only GrapesJS acts on, and what would lead the canvas away.
 *
 * @param {string} html
 */
function withoutOrders(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const order of page.querySelectorAll(ORDERS)) order.remove();
  for (const element of page.querySelectorAll("*"))
    for (const { name } of [...element.attributes]) if (name.startsWith("data-gjs")) element.removeAttribute(name);
  return `<!doctype html>${page.documentElement.outerHTML}`;
}

/**
 * Put a folder's style sheets and pictures into a page. Scripts stay as they are; the canvas does not run them.
 *
 * @param {string} html
 * @param {string} path
 * @param {Folder} files
 */
async function inlineFiles(html, path, files) {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const link of page.querySelectorAll("link[rel~=stylesheet]")) {
    const address = resolvePath(path, link.getAttribute("href") ?? "");
    if (!files.has(address)) continue;
    const style = page.createElement("style");
    const css = await readStyleSheet(address, files, []);
    const media = link.getAttribute("media");
    style.textContent = media && media !== "all" ? `@media ${media} {\n${css}\n}` : css;
    link.replaceWith(style);
  }
  for (const style of page.querySelectorAll("style"))
    style.textContent = await inlineCss(style.textContent ?? "", path, files, []);
  for (const image of page.querySelectorAll("img[src]")) {
    const data = await readPicture(resolvePath(path, image.getAttribute("src") ?? ""), files);
    if (data) image.setAttribute("src", data);
  }
  return `<!doctype html>${page.documentElement.outerHTML}`;
}

/**
 * @param {string} path
 * @param {Folder} files
 * @param {string[]} importers The sheets that import it, so that none imports itself.
 * @returns {Promise<string>}
 */
async function readStyleSheet(path, files, importers) {
  const file = files.get(path);
  if (!file || importers.includes(path) || importers.length > MAX_IMPORT_DEPTH) return "";
  return inlineCss(decodeText(new Uint8Array(await file.arrayBuffer())), path, files, [...importers, path]);
}

/**
 * Put what a style sheet imports and its pictures into it, as far as they are in the folder.
 *
 * @param {string} css
 * @param {string} path
 * @param {Folder} files
 * @param {string[]} importers
 */
async function inlineCss(css, path, files, importers) {
  const imported = await replaceEach(css, IMPORT, async (whole, [, , address, media]) => {
    const target = resolvePath(path, address);
    if (!files.has(target)) return whole;
    const sheet = await readStyleSheet(target, files, importers);
    return media.trim() ? `@media ${media.trim()} {\n${sheet}\n}` : sheet;
  });
  return replaceEach(imported, ADDRESS, async (whole, [, , address]) => {
    const data = await readPicture(resolvePath(path, address.trim()), files);
    return data ? `url("${data}")` : whole;
  });
}

/**
 * @param {string} text
 * @param {RegExp} pattern
 * @param {(whole: string, groups: string[]) => Promise<string>} replace
 */
async function replaceEach(text, pattern, replace) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    parts.push(text.slice(end, match.index), await replace(match[0], match));
    end = match.index + match[0].length;
  }
  return parts.join("") + text.slice(end);
}

/** @param {string} path @param {Folder} files @returns {Promise<string>} Empty where there is none, or a large one. */
async function readPicture(path, files) {
  const file = files.get(path);
  return file && file.size <= MAX_PICTURE_BYTES && /\.(?:png|jpe?g|gif|webp|avif|svg|ico|woff2?)$/i.test(path)
    ? toDataUrl(file)
    : "";
}

/** @param {File} file */
function pathOf(file) {
  return file.webkitRelativePath ? file.webkitRelativePath.split("/").slice(1).join("/") : file.name;
}

/** @param {string} from @param {string} address @returns {string} Empty for one that leads out of the folder. */
function resolvePath(from, address) {
  try {
    const url = new URL(address, `https://folder.invalid/${encodeURI(from)}`);
    return url.hostname === "folder.invalid" ? decodeURIComponent(url.pathname.slice(1)) : "";
  } catch {
    return "";
  }
}

/** @param {string} one @param {string} other */
function byIndexFirst(one, other) {
  const rank = (/** @type {string} */ path) =>
    `${String(path.split("/").length).padStart(3, "0")}${/(^|\/)index\.html?$/i.test(path) ? 0 : 1}${path}`;
  return rank(one) < rank(other) ? -1 : 1;
}

/** @param {string} html */
function titleOf(html) {
  return new DOMParser().parseFromString(html, "text/html").title.trim();
}

/** @param {string} name */
function baseName(name) {
  return name.replace(/\.html?$/i, "");
}

/** @param {File} file @returns {Promise<string>} */
function toDataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
