/** Read text as browsers do: by its byte order mark, by what it says of itself, as UTF-8, and otherwise as windows-1252. */

const MARKS = /** @type {const} */ ([
  ["utf-8", [0xef, 0xbb, 0xbf]],
  ["utf-16le", [0xff, 0xfe]],
  ["utf-16be", [0xfe, 0xff]],
]);
/** Browsers look for the name of the encoding in the first kilobyte. */
const SEARCHED_BYTES = 1024;
const DECLARED = /<meta[^>]{1,200}charset\s*=\s*["']?\s*([\w-]{2,40})|^@charset "([\w-]{2,40})";/i;

/**
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function decodeText(bytes) {
  const marked = MARKS.find(([, mark]) => mark.every((byte, index) => bytes[index] === byte));
  if (marked) return new TextDecoder(marked[0]).decode(bytes);
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, SEARCHED_BYTES));
  const [, page, sheet] = DECLARED.exec(head) ?? [];
  // a page whose first bytes can be read one by one is not in UTF-16, whatever it says
  const declared = (page ?? sheet ?? "utf-8").replace(/^utf-16.*/i, "utf-8");
  return decodeAs(declared, bytes) ?? decodeAs("utf-8", bytes) ?? new TextDecoder("windows-1252").decode(bytes);
}

/** @param {string} label @param {Uint8Array} bytes @returns {string | undefined} Nothing if the bytes are no such text. */
function decodeAs(label, bytes) {
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes);
  } catch {
    return undefined; // an encoding that nobody knows, or another one than was said
  }
}
