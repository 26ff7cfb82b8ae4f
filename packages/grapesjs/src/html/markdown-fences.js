/** Take code out of the Markdown fences that models put around it. */

const OPENING = /^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^`<]*$/;
const CODE_SIGN = /[{};=]/;

/**
 * Return the code within Markdown fences, also if one is missing or words are around them; else the text itself.
 * @param {string} text
 */
export function stripMarkdownFence(text) {
  const stripped = text.replaceAll("\r\n", "\n").replace(/^[\ufeff\u200b \t\n]+|[\ufeff\u200b \t\n]+$/g, "");
  const inLine = /^(`{3,})(?:(?:html|css|js)\b)?([^\n`]*)\1$/.exec(stripped);
  if (inLine) return inLine[2].trim();
  const lines = stripped.split("\n");
  const blocks = findBlocks(lines);
  const fenced = new Uint8Array(lines.length);
  for (const { start, end } of blocks) fenced.fill(1, start, end + 1);
  const outside = lines.filter((_, number) => !fenced[number]);
  if (blocks.length && !hasCode(outside)) return joinBlocks(blocks);
  const start = OPENING.test(lines[0]) ? 1 : 0;
  const end = lines.length > 1 && /^[ \t]*(`{3,}|~{3,})[ \t]*$/.test(lines[lines.length - 1]) ? -1 : lines.length;
  return start === 0 && end === lines.length ? text : lines.slice(start, end).join("\n");
}

/** @typedef {{language: string, code: string, start: number, end: number}} Block */

/**
 * @param {string[]} lines
 * @returns {Block[]}
 */
function findBlocks(lines) {
  /** @type {Block[]} */
  const blocks = [];
  /** @type {{fence: string, language: string, start: number} | null} */
  let open = null;
  lines.forEach((line, number) => {
    const match = OPENING.exec(line);
    if (!open) {
      if (match) open = { fence: match[1], language: match[2].toLowerCase(), start: number };
    } else if (match && match[2] === "" && match[1].startsWith(open.fence)) {
      const code = lines.slice(open.start + 1, number).join("\n");
      blocks.push({ language: open.language, code, start: open.start, end: number });
      open = null;
    }
  });
  return blocks;
}

/** @param {Block[]} blocks */
function joinBlocks(blocks) {
  const isMixed = new Set(blocks.map(({ language }) => language === "css")).size === 2;
  const texts = blocks.map(({ language, code }) =>
    isMixed && language === "css" ? `<style>\n${code}\n</style>` : code,
  );
  return texts.join("\n");
}

/** @param {string[]} lines */
function hasCode(lines) {
  return lines.some(
    (line) => line.trimStart().startsWith("<") || CODE_SIGN.test(line) || line.split("`").length % 2 === 0,
  );
}
