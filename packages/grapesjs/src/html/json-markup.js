/** HTML that a model sends as the text of a JSON string, as the client for files reads it (decision 0417). */

const BLOCK_TAGS = new Set(
  (
    "address article aside blockquote details dialog div dl fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 " +
    "header hgroup hr main menu nav ol p pre search section table ul"
  ).split(" "),
);

/** A quotation mark with a backslash in a tag. In a text it may be what the page shows. */
const ESCAPED_ATTRIBUTE = /<[a-z][^<>="]*=\\"/i;

/**
 * Return the HTML that a JSON string holds, also one without its outer quotation marks; else the text itself.
 *
 * Quotation marks around words are a quotation: only markup with escapes, or a block of a page, is taken out of them.
 * @param {string} html
 * @returns {string}
 */
export function decodeJsonMarkup(html) {
  const text = html.trim();
  const isQuoted = text.length > 1 && text.startsWith('"') && text.endsWith('"');
  const firstTag = /^"?<([a-z][\w-]*)/i.exec(text);
  const isEnded = text.endsWith(">") || text.endsWith('>"');
  if (!firstTag || !isEnded || isQuoted !== text.startsWith('"')) return html;
  if (!ESCAPED_ATTRIBUTE.test(text) && !(isQuoted && BLOCK_TAGS.has(firstTag[1].toLowerCase()))) return html;
  try {
    return JSON.parse(
      (isQuoted ? text : `"${text}"`).replace(/[\n\r\t]/g, (blank) => JSON.stringify(blank).slice(1, -1)),
    );
  } catch {
    return html;
  }
}
