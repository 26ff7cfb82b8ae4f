/** Waiting: between attempts, and until the browser is online again. */

/** @import { FermataError } from "./errors.js" */

const FIRST_DELAY = 200;
const MAX_DELAY = 10_000;
const MAX_RETRY_AFTER = 120_000;
const MAX_OFFLINE_WAIT = 15_000;
/** A timer that is longer ends at once. */
const MAX_TIMER = 2 ** 31 - 1;
/** Failures in a row after which a single request is given up. */
export const MAX_REQUEST_FAILURES = 6;
/** The longest Retry-After that a request waits for which somebody waits; a longer one is for them to know. */
export const MAX_SILENT_WAIT = 10_000;

/**
 * Wait. It rejects with the signal's reason when the signal is aborted.
 *
 * @param {number} milliseconds
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function wait(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      },
      Math.min(milliseconds, MAX_TIMER),
    );
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/**
 * Choose how long to wait after so many failures in a row: anything up to a limit that doubles each time ("full jitter", so
 * that many browsers do not come back at the same moment), and at least what the service asked for.
 *
 * @param {number} failures
 * @param {number} [retryAfter] Milliseconds.
 * @param {() => number} [random]
 * @returns {number} Milliseconds.
 */
export function retryDelay(failures, retryAfter = 0, random = Math.random) {
  const limit = Math.min(MAX_DELAY, FIRST_DELAY * 2 ** Math.min(failures - 1, 20));
  const jitter = random() * limit;
  return retryAfter > 0 ? Math.min(retryAfter, MAX_RETRY_AFTER) + jitter : jitter;
}

/** @returns {boolean} Whether the browser says that it has no network. */
export function isOffline() {
  return globalThis.navigator?.onLine === false;
}

/**
 * Wait until the browser says that it is online. As it may be wrong, 15 seconds are the longest wait.
 *
 * @param {typeof wait} sleep
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export async function waitUntilOnline(sleep, signal) {
  const over = new AbortController();
  const stop = () => over.abort();
  const untilOver = { signal: over.signal };
  globalThis.addEventListener?.("online", stop, untilOver);
  signal?.addEventListener("abort", stop, untilOver);
  try {
    if (isOffline() && !signal?.aborted) await sleep(MAX_OFFLINE_WAIT, over.signal);
  } catch (error) {
    if (!over.signal.aborted) throw error;
  } finally {
    stop(); // nobody listens any more
  }
  signal?.throwIfAborted();
}

/**
 * Call an operation until it succeeds, or fails for a reason that will not pass.
 *
 * @template T
 * @param {() => Promise<T>} operation
 * @param {typeof wait} sleep
 * @param {AbortSignal} [signal]
 * @param {{limit?: number, maxRetryAfter?: number}} [patience] How often it may fail, and how many milliseconds the service
 *   may ask to wait.
 * @returns {Promise<T>}
 */
export async function callWithRetries(operation, sleep, signal, patience = {}) {
  const { limit = MAX_REQUEST_FAILURES, maxRetryAfter = Number.POSITIVE_INFINITY } = patience;
  for (let failures = 1; ; failures += 1) {
    try {
      return await operation();
    } catch (error) {
      const { retryable, retryAfter } = /** @type {FermataError} */ (error);
      if (!retryable || failures >= limit || retryAfter > maxRetryAfter) throw error;
      if (isOffline()) await waitUntilOnline(sleep, signal);
      else await sleep(retryDelay(failures, retryAfter), signal);
    }
  }
}
