/** Say in words what a tool call does. */

const VERBS = /** @type {Record<string, (input: any) => string>} */ ({
  insertHtml: () => "Add elements",
  replaceNodeHtml: () => "Rewrite an element",
  deleteNode: () => "Delete an element",
  moveNode: () => "Move an element",
  duplicateNode: () => "Duplicate an element",
  updateNodeProps: () => "Change properties",
  renameNode: ({ label }) => (label ? `Name it “${label}”` : "Name an element"),
  applyCss: ({ css }) => styleWords(css),
  assignClass: ({ className, name }) => `Add class ${className ?? name ?? ""}`.trim(),
  removeClass: ({ className, name }) => `Remove class ${className ?? name ?? ""}`.trim(),
  read_document: () => "Read the page",
  getNodeHtml: () => "Read an element",
  open_document: () => "Open a page",
  render_snapshot: () => "Look at the page",
  addPage: ({ title, name }) => `Add page ${title ?? name ?? ""}`.trim(),
  renamePage: () => "Rename a page",
  deletePage: () => "Delete a page",
  duplicatePage: () => "Duplicate a page",
  restore: () => "Restore",
});

/**
 * A few words for a call. An unknown tool shows its name, with spaces.
 *
 * @param {string} name Of any dialect: `insertHtml` or `site_insert_html`.
 * @param {any} input
 */
export function describeCall(name, input) {
  const words = VERBS[name] ?? VERBS[toCamelCase(name)];
  if (words) return words(input ?? {});
  const spaced = name
    .replace(/^(?:site|content|data|plugin)_/, "")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ");
  return spaced.charAt(0).toUpperCase() + spaced.slice(1).toLowerCase();
}

/** @param {string} name */
function toCamelCase(name) {
  return name.replace(/^site_/, "").replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

/** @param {unknown} css */
function styleWords(css) {
  const selector = typeof css === "string" ? /^\s*([^{@]{1,40}?)\s*\{/.exec(css)?.[1] : undefined;
  return selector ? `Style ${selector}` : "Change styles";
}
