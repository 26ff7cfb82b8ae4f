/** Write values as lines that people read: lists by item, objects by member, texts by paragraph. */

/** What ends a block of a text with markup. A line ends there, so that what has changed is found in its block. */
const END_OF_BLOCK =
  /(<\/(?:p|h[1-6]|li|ul|ol|blockquote|pre|table|tr|div|section|figure)>|<(?:br|hr)\s*\/?>)(?=[^\n])/gi;
const INDENT = "  ";

/**
 * Return the lines of a value.
 *
 * @param {any} value
 * @returns {string[]} None for no value.
 */
export function toLines(value) {
  if (value === undefined || value === null || value === "") return [];
  if (typeof value === "string") return value.replace(END_OF_BLOCK, "$1\n").split("\n");
  if (Array.isArray(value)) return value.flatMap((item) => indent(toLines(item), "• "));
  if (typeof value !== "object") return [String(value)];
  const names = Object.keys(value).sort();
  return names.flatMap((name) => {
    const lines = toLines(value[name]);
    const isShort = lines.length < 2 && !isNested(value[name]);
    return isShort ? [`${name}: ${lines[0] ?? ""}`] : [`${name}:`, ...indent(lines, INDENT)];
  });
}

/** @param {any} value */
const isNested = (value) => value !== null && typeof value === "object";

/** Put a sign before the first line, and room of its width before the others. @param {string[]} lines @param {string} sign */
function indent(lines, sign) {
  const room = " ".repeat(sign.length);
  return (lines.length ? lines : [""]).map((line, index) => (index ? room : sign) + line);
}
