/** Events from a stream of bytes: one JSON object a line. */

/** @import { TurnEvent } from "./types.js" */
import { InvalidResponseError } from "./errors.js";

/**
 * Collects bytes, and returns the events that they complete. A blank line is a sign of life. A last line without its end
 * is incomplete, and never an event.
 */
export class EventParser {
  #decoder = new TextDecoder();
  /** The pieces of the line that has not ended. @type {string[]} */
  #pieces = [];

  /**
   * @param {Uint8Array} bytes
   * @returns {TurnEvent[]}
   */
  push(bytes) {
    const [first, ...rest] = this.#decoder.decode(bytes, { stream: true }).split("\n");
    this.#pieces.push(first);
    if (rest.length === 0) return [];
    const lines = [this.#pieces.join(""), ...rest];
    this.#pieces = [/** @type {string} */ (lines.pop())];
    return lines.filter((line) => line.trim()).map(parseLine);
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
