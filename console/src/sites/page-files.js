/** Write a page as one file, and files into a folder. */

/**
 * Write a page as one HTML file. What its own head says goes before what every page needs.
 *
 * @param {{title: string, body: string, css: string, head?: string, attributes?: Record<string, string>}} page `attributes`
 *     are those of the root element.
 */
export function toHtmlFile({ title, body, css, head = "", attributes = {} }) {
  const root = Object.entries({ lang: "en", ...attributes }).map(([name, value]) => ` ${name}="${escapeText(value)}"`);
  const missing = [
    /<meta[^>]+charset/i.test(head) ? "" : '<meta charset="utf-8">',
    /<meta[^>]+name="?viewport/i.test(head)
      ? ""
      : '<meta name="viewport" content="width=device-width, initial-scale=1">',
    /<title[\s>]/i.test(head) ? "" : `<title>${escapeText(title)}</title>`,
  ];
  const safeCss = css.replace(/<\/(style)/gi, "<\\/$1");
  return `<!doctype html>
<html${root.join("")}>
<head>
${[...missing, withUtf8(head)].filter(Boolean).join("\n")}
<style>
${safeCss}
</style>
</head>
${/^\s*<body[\s>]/i.test(body) ? body : `<body>${body}</body>`}
</html>
`;
}

/** The file is written in UTF-8, whatever the page that was imported was in. @param {string} head */
function withUtf8(head) {
  return head.replace(/(<meta[^>]*\bcharset\s*=\s*["']?)[\w-]+/i, "$1utf-8").trim();
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
