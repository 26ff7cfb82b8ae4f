/** Events from a stream of bytes: one JSON object a line. */

/** @import { TurnEvent } from "./types.js" */
import { InvalidResponseError } from "./errors.js";

/** The longest line, in characters. An event of the service has less than a tenth of it. */
const MAX_LINE = 64_000_000;

/**
 * Collects bytes, and returns the events that they complete. A blank line is a sign of life. A last line without its end
 * is incomplete, and never an event.
 */
export class EventParser {
  #decoder = new TextDecoder();
  /** The pieces of the line that has not ended. @type {string[]} */
  #pieces = [];
  #length = 0;

  /**
   * Return the events one by one: those before a line that is none have arrived.
   *
   * @param {Uint8Array} bytes
   * @returns {Generator<TurnEvent, void, void>}
   */
  *push(bytes) {
    const [first, ...rest] = this.#decoder.decode(bytes, { stream: true }).split("\n");
    this.#keep(first);
    if (rest.length === 0) return;
    const lines = [this.#pieces.join(""), ...rest];
    this.#pieces = [];
    this.#length = 0;
    this.#keep(/** @type {string} */ (lines.pop()));
    for (const line of lines) if (line.trim()) yield parseLine(line);
  }

  /** @param {string} piece */
  #keep(piece) {
    this.#pieces.push(piece);
    this.#length += piece.length;
    if (this.#length > MAX_LINE) throw new InvalidResponseError("The service sent a line that does not end.");
  }
}

/**
 * @param {string} line
 * @returns {TurnEvent}
 */
function parseLine(line) {
  let value;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new InvalidResponseError("The service sent a line that is not JSON.", { cause });
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new InvalidResponseError("The service sent a line that is not an object.");
  }
  return value;
}
