/** Write a page as one file, and files into a folder. */

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
