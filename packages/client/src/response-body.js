/** Bodies of answers, read as they come: a slow connection may take longer than any fixed time. */

/** @import { TurnEvent } from "./types.js" */
/** @import { Deadline } from "./deadline.js" */
import { InvalidResponseError, UnreachableError } from "./errors.js";
import { EventParser } from "./ndjson.js";

/** A stream sends at least a blank line every 10 to 15 seconds. Three times that is a dead connection. */
const IDLE_TIMEOUT = 45_000;

/**
 * Read the events of a stream.
 *
 * @param {Response} response
 * @param {Deadline} watch
 * @returns {AsyncGenerator<TurnEvent, void, void>}
 */
export async function* readEvents(response, watch) {
  if (!response.body) throw new InvalidResponseError("The service sent an answer without a body.");
  const isPage = /^text\/html\b/i.test(response.headers.get("content-type") ?? "");
  if (isPage) throw new InvalidResponseError("The service answered with a page of HTML.");
  const parser = new EventParser();
  for await (const bytes of readChunks(response, watch)) yield* parser.push(bytes);
}

/**
 * Read all of a body.
 *
 * @param {Response} response
 * @param {Deadline} watch
 * @returns {Promise<Blob>}
 */
export async function readBlob(response, watch) {
  const chunks = [];
  for await (const bytes of readChunks(response, watch)) chunks.push(/** @type {BlobPart} */ (bytes));
  return new Blob(chunks, { type: response.headers.get("content-type") ?? "" });
}

/**
 * Read the JSON of an answer.
 *
 * @param {Response} response
 * @param {Deadline} watch
 * @returns {Promise<Record<string, any>>}
 */
export async function readJson(response, watch) {
  const text = await (await readBlob(response, watch)).text();
  let value;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new InvalidResponseError("The service sent something that is not JSON.", { cause });
  }
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  throw new InvalidResponseError("The service sent JSON that is not an object.");
}

/**
 * @param {Response} response
 * @param {Deadline} watch Is paused while nobody waits for bytes.
 */
async function* readChunks(response, watch) {
  const reader = response.body?.getReader();
  if (!reader) return;
  try {
    for (;;) {
      watch.restart(IDLE_TIMEOUT);
      const { done, value } = await reader.read().catch(throwLost);
      watch.pause();
      if (done) return;
      yield value;
    }
  } finally {
    watch.pause();
    reader.cancel().catch(() => {});
  }
}

/**
 * @param {unknown} cause
 * @returns {never}
 */
function throwLost(cause) {
  throw new UnreachableError("The connection to the service was lost.", { cause });
}
