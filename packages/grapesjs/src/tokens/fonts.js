/** Name font variables, and write font stacks. */

export const GENERIC_FONTS = [
  "serif",
  "sans-serif",
  "monospace",
  "cursive",
  "fantasy",
  "system-ui",
  "ui-serif",
  "ui-sans-serif",
];

/**
 * Return a name in lower-case letters, digits and hyphens; empty if nothing is left of it.
 * @param {string} name
 */
export function slugify(name) {
  return name
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
}

/**
 * Return a variable's name without `--`; empty if the name has no letters or digits.
 * @param {string} name
 */
export function fontVariable(name) {
  const slug = slugify(name);
  return !slug || slug.startsWith("font-") ? slug : `font-${slug}`;
}

/**
 * Return a family, if any, and its fallbacks, as the value of `font-family`.
 * @param {string} family
 * @param {string} fallback
 */
export function fontStack(family, fallback) {
  const names = fallback.split(",").map((name) => name.trim().replace(/["\\\n\r<>;{}]/g, ""));
  const fallbacks = names.filter(Boolean).join(", ") || "sans-serif";
  return family ? `"${family.replace(/["\\\n\r<>]/g, "")}", ${fallbacks}` : fallbacks;
}
