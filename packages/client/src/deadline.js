/** Time limits of requests. */

import { UnreachableError } from "./errors.js";

/** A signal that is aborted with another one, or when a time has passed. */
export class Deadline {
  #controller = new AbortController();
  #outer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #isOver = false;
  #abort = () => this.#controller.abort(this.#outer?.reason);

  /** @param {AbortSignal} [outer] */
  constructor(outer) {
    this.#outer = outer;
    outer?.throwIfAborted();
    outer?.addEventListener("abort", this.#abort);
  }

  get signal() {
    return this.#controller.signal;
  }

  /** @param {number} milliseconds */
  restart(milliseconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isOver = true;
      this.#controller.abort();
    }, milliseconds);
  }

  pause() {
    clearTimeout(this.#timer);
  }

  end() {
    this.pause();
    this.#outer?.removeEventListener("abort", this.#abort);
  }

  /**
   * Return what an error of the request means: the caller's own abort, or a time-out.
   *
   * @param {unknown} error
   */
  explain(error) {
    if (this.#outer?.aborted) return this.#outer.reason;
    if (this.#isOver) return new UnreachableError("The service has stopped sending.", { cause: error });
    return error;
  }
}

/**
 * Wait for what knows nothing of the signal, no longer than until it is aborted.
 *
 * @template T
 * @param {T | PromiseLike<T>} promise
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export function untilAborted(promise, signal) {
  if (!signal) return Promise.resolve(promise);
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    Promise.resolve(promise)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", stop));
  });
}
