/** Say in words what went wrong. */

/** @import { Problem } from "./session.js" */

/**
 * @param {any} error Usually a `FermataError` of `@fermata/client`.
 * @returns {Problem}
 */
export function describeError(error) {
  const message = error instanceof Error && error.message ? error.message : "Something went wrong.";
  const status = error?.status ?? 0;
  const canRetry = Boolean(error?.retryable) || status === 409;
  return { message, hint: typeof error?.hint === "string" ? error.hint : "", canRetry };
}

/**
 * What a turn that has failed says to the person who asked.
 *
 * @param {Record<string, any>} event The terminal event `error`.
 * @returns {Problem}
 */
export function describeTurnError(event) {
  return { message: event.message, hint: "", canRetry: event.retryable !== false };
}
