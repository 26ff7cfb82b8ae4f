/** Say in words what went wrong. */

/** @import { Problem } from "./session-state.js" */

const UNKNOWN = "Something went wrong: the service's answer cannot be read.";

/**
 * @param {any} error Usually a `FermataError` of `@fermata/client`.
 * @returns {Problem}
 */
export function describeError(error) {
  // What a program says of itself is of no use to a person, such as of an answer that has not its parts.
  const isOwn = [TypeError, RangeError, ReferenceError].some((kind) => error instanceof kind);
  const message = error instanceof Error && error.message && !isOwn ? error.message : UNKNOWN;
  const status = typeof error?.status === "number" ? error.status : 0;
  const code = textOf(error?.code) || (isOwn ? "InvalidResponseError" : textOf(error?.name));
  const canRetry = Boolean(error?.retryable) || status === 409;
  return { message, hint: textOf(error?.hint), canRetry, code, status };
}

/**
 * What a turn that has failed says to the person who asked.
 *
 * @param {Record<string, any>} event The terminal event `error`.
 * @returns {Problem}
 */
export function describeTurnError(event) {
  const message = textOf(event.message) || UNKNOWN;
  return { message, hint: "", canRetry: event.retryable !== false, code: textOf(event.code), status: 0 };
}

/** @param {unknown} value */
function textOf(value) {
  return typeof value === "string" ? value : "";
}
