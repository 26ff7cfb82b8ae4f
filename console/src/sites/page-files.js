/** Read pages from files, and write a page as one file. */

/**
 * What a folder or a file brings: its pages, with the style sheets and pictures of the folder put into them.
 *
 * @typedef {{name: string, pages: {name: string, html: string}[]}} ImportedSite
 */

const MAX_PICTURE_BYTES = 2_000_000;

/** @param {File} file @returns {Promise<ImportedSite>} */
export async function importFile(file) {
  const html = await file.text();
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
  if (!paths.length) throw new Error("There is no HTML file in this folder.");
  const pages = [];
  for (const path of paths) {
    const file = /** @type {File} */ (byPath.get(path));
    pages.push({ name: baseName(file.name), html: await inlineFiles(await file.text(), path, byPath) });
  }
  return { name: titleOf(pages[0].html) || "Imported site", pages };
}

/**
 * Put a folder's style sheets and pictures into a page. Scripts stay as they are; the canvas does not run them.
 *
 * @param {string} html
 * @param {string} path
 * @param {Map<string, File>} files
 */
async function inlineFiles(html, path, files) {
  const page = new DOMParser().parseFromString(html, "text/html");
  const find = (/** @type {string | null} */ address) => files.get(resolvePath(path, address ?? ""));
  for (const link of page.querySelectorAll("link[rel=stylesheet]")) {
    const file = find(link.getAttribute("href"));
    if (!file) continue;
    const style = page.createElement("style");
    style.textContent = await file.text();
    link.replaceWith(style);
  }
  for (const image of page.querySelectorAll("img[src]")) {
    const file = find(image.getAttribute("src"));
    if (file && file.size <= MAX_PICTURE_BYTES) image.setAttribute("src", await toDataUrl(file));
  }
  return `<!doctype html>${page.documentElement.outerHTML}`;
}

/**
 * Write a page as one HTML file.
 *
 * @param {{title: string, html: string, css: string, language?: string}} page
 */
export function toHtmlFile({ title, html, css, language = "en" }) {
  const body = /^\s*<body[\s>]/i.test(html) ? html : `<body>${html}</body>`;
  const safeCss = css.replace(/<\/(style)/gi, "<\\/$1");
  return `<!doctype html>
<html lang="${escapeText(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(title)}</title>
<style>
${safeCss}
</style>
</head>
${body}
</html>
`;
}

/**
 * Write files into a folder that the person chooses, where the browser can (File System Access).
 *
 * @param {{name: string, content: string}[]} files
 */
export async function writeToFolder(files) {
  const folder = await /** @type {any} */ (window).showDirectoryPicker({ mode: "readwrite" });
  for (const { name, content } of files) {
    const handle = await folder.getFileHandle(name, { create: true });
    const writable = await handle.createWritable();
    await writable.write(content);
    await writable.close();
  }
}

/**
 * Name a file after a page: letters, digits and dashes.
 *
 * @param {string} name
 */
export function fileNameOf(name) {
  const plain = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-");
  return plain.replace(/^-+|-+$/g, "").slice(0, 60) || "page";
}

/** @param {string} text */
function escapeText(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

/** @param {File} file */
function pathOf(file) {
  return file.webkitRelativePath ? file.webkitRelativePath.split("/").slice(1).join("/") : file.name;
}

/** @param {string} from @param {string} address */
function resolvePath(from, address) {
  try {
    const url = new URL(address, `https://folder.invalid/${from}`);
    return url.hostname === "folder.invalid" ? decodeURIComponent(url.pathname.slice(1)) : "";
  } catch {
    return "";
  }
}

/** @param {string} one @param {string} other */
function byIndexFirst(one, other) {
  const rank = (/** @type {string} */ path) =>
    `${path.split("/").length}${/^index\.html?$/i.test(path) ? 0 : 1}${path}`;
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
