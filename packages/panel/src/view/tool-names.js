/** Say in words what a tool call does. */

const VERBS = /** @type {Record<string, (input: any) => string>} */ ({
  insertHtml: () => "Add elements",
  replaceNodeHtml: () => "Rewrite an element",
  deleteNode: () => "Delete an element",
  moveNode: () => "Move an element",
  duplicateNode: () => "Duplicate an element",
  updateNodeProps: () => "Change properties",
  renameNode: ({ label }) => (nameOf(label) ? `Name it “${nameOf(label)}”` : "Name an element"),
  applyCss: ({ css }) => styleWords(css),
  assignClass: ({ className, name }) => `Add class ${nameOf(className ?? name)}`.trim(),
  removeClass: ({ className, name }) => `Remove class ${nameOf(className ?? name)}`.trim(),
  read_document: () => "Read the page",
  getNodeHtml: () => "Read an element",
  open_document: () => "Open a page",
  render_snapshot: () => "Look at the page",
  addPage: ({ title, name }) => `Add page ${nameOf(title ?? name)}`.trim(),
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
  const known = [name, toCamelCase(name)].find((each) => Object.hasOwn(VERBS, each));
  if (known) return VERBS[known](input ?? {});
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

/** Part of a name that the model gave, if it is one. @param {unknown} value */
function nameOf(value) {
  return typeof value === "string" ? value.slice(0, 80) : "";
}

/** @param {unknown} css */
function styleWords(css) {
  const start = typeof css === "string" ? css.slice(0, 100).trimStart() : "";
  const selector = /^([^{@]{1,40}?)\s*\{/.exec(start)?.[1];
  return selector ? `Style ${selector}` : "Change styles";
}
