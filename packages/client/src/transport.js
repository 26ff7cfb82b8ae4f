/** Requests to one service. Only a refused token is tried again here. */

/** @import { FermataOptions, TurnEvent } from "./types.js" */
import { errorFromResponse, InvalidResponseError, UnreachableError } from "./errors.js";
import { EventParser } from "./ndjson.js";
import { ALREADY_UPLOADED } from "./uploads.js";

export const API_PATH = "/admin/api/ai";
const REQUEST_TIMEOUT = 30_000;
/** The bytes of a body that a slow connection sends in a millisecond. */
const BYTES_PER_MILLISECOND = 50;
/** A stream sends at least a blank line every 10 to 15 seconds. Three times that is a dead connection. */
const IDLE_TIMEOUT = 45_000;
const TOOL_NAMES = { fermata: "seed", instatic: "prefixed" };

/**
 * @typedef {object} RequestOptions
 * @property {unknown} [body] Sent as JSON.
 * @property {Record<string, string | number | boolean | undefined>} [query]
 * @property {Record<string, string | undefined>} [headers]
 * @property {AbortSignal} [signal]
 */

export class Transport {
  #baseUrl;
  #token;
  #fetch;
  #toolNames;

  /** @param {FermataOptions} options */
  constructor({ baseUrl = "", token, fetch, dialect }) {
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#token = token;
    this.#fetch = fetch ?? globalThis.fetch.bind(globalThis);
    this.#toolNames = dialect && TOOL_NAMES[dialect];
  }

  /**
   * Send a request, and return the JSON of its answer.
   *
   * @param {string} method
   * @param {string} path
   * @param {RequestOptions} [options]
   * @returns {Promise<any>} `undefined` for an answer without a body.
   */
  async request(method, path, options) {
    return this.#send(method, path, options, async (response) => {
      if (response.status === 204) return undefined;
      const text = await response.text().catch(throwLost);
      try {
        return JSON.parse(text);
      } catch (cause) {
        throw new InvalidResponseError("The service sent something that is not JSON.", { cause });
      }
    });
  }

  /**
   * Fetch what is not JSON, such as an image.
   *
   * @param {string} path
   * @param {RequestOptions} [options]
   * @returns {Promise<Blob>}
   */
  async fetchBlob(path, options) {
    return this.#send("GET", path, options, (response) => response.blob().catch(throwLost));
  }

  /**
   * Send bytes to an upload address. The address itself says who may, so that no token and no cookie is sent.
   *
   * It takes them once: 412 means that they are there, because the answer to an earlier request was lost.
   *
   * @param {string} url
   * @param {Uint8Array} bytes
   * @param {Record<string, string>} headers
   * @param {AbortSignal} [signal]
   */
  async put(url, bytes, headers, signal) {
    const body = /** @type {BodyInit} */ (bytes);
    const response = await this.#fetchOnce(url, { method: "PUT", headers, body, credentials: "omit", signal });
    if (response.ok || response.status === ALREADY_UPLOADED) return;
    throw errorFromResponse(response.status, await readText(response), response.headers);
  }

  /**
   * Send a request, and read the events of its answer as they come.
   *
   * @param {string} method
   * @param {string} path
   * @param {RequestOptions & {onOpen?: () => void}} options
   * @returns {AsyncGenerator<TurnEvent, void, void>}
   */
  async *stream(method, path, { onOpen, ...options }) {
    const watch = new Deadline(options.signal);
    try {
      watch.restart(timeoutOf(options.body));
      const response = await this.#open(method, path, { ...options, signal: watch.signal });
      onOpen?.();
      yield* readEvents(response, watch);
    } catch (error) {
      throw watch.explain(error);
    } finally {
      watch.end();
    }
  }

  /**
   * @template T
   * @param {string} method
   * @param {string} path
   * @param {RequestOptions} [options]
   * @param {(response: Response) => Promise<T>} [read]
   * @returns {Promise<T>}
   */
  async #send(method, path, options = {}, read = async () => /** @type {T} */ (undefined)) {
    const watch = new Deadline(options.signal);
    try {
      watch.restart(timeoutOf(options.body));
      return await read(await this.#open(method, path, { ...options, signal: watch.signal }));
    } catch (error) {
      throw watch.explain(error);
    } finally {
      watch.end();
    }
  }

  /**
   * Send a request, once more with a new token if the first one was refused.
   *
   * @param {string} method
   * @param {string} path
   * @param {RequestOptions} options
   * @returns {Promise<Response>} A successful response.
   */
  async #open(method, path, options) {
    for (const refresh of [false, true]) {
      const response = await this.#fetchOnce(this.#urlOf(path, options.query), {
        method,
        headers: await this.#headersOf(options, refresh),
        body: options.body === undefined ? undefined : toText(options.body),
        credentials: this.#token === undefined ? "same-origin" : "omit",
        signal: options.signal,
      });
      if (response.ok) return response;
      const mayRefresh = response.status === 401 && typeof this.#token === "function" && !refresh;
      if (!mayRefresh) throw errorFromResponse(response.status, await readText(response), response.headers);
    }
    throw new Error("unreachable");
  }

  /**
   * @param {string} url
   * @param {RequestInit} init
   */
  async #fetchOnce(url, init) {
    try {
      return await this.#fetch(url, init);
    } catch (cause) {
      if (init.signal?.aborted) throw cause;
      throw new UnreachableError(`No service answers at ${this.#baseUrl || "this address"}.`, { cause });
    }
  }

  /**
   * @param {string} path
   * @param {RequestOptions["query"]} query
   */
  #urlOf(path, query = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    return `${this.#baseUrl}${API_PATH}${path}${text && `?${text}`}`;
  }

  /**
   * @param {RequestOptions} options
   * @param {boolean} refresh
   */
  async #headersOf(options, refresh) {
    const token = typeof this.#token === "function" ? await this.#token({ refresh }) : this.#token;
    const headers = {
      ...(options.body !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(this.#toolNames && { "fermata-tool-names": this.#toolNames }),
      ...options.headers,
    };
    const given = Object.entries(headers).filter(([, value]) => value !== undefined);
    return /** @type {Record<string, string>} */ (Object.fromEntries(given));
  }
}

/**
 * Make a path of segments. Each is escaped.
 *
 * @param {...(string | number)} segments
 */
export function pathOf(...segments) {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join("");
}

/**
 * A body that was measured before is text already.
 *
 * @param {unknown} body
 */
const toText = (body) => (typeof body === "string" ? body : JSON.stringify(body));

/**
 * @param {unknown} body
 * @returns {number} Milliseconds until a request with this body should be answered.
 */
const timeoutOf = (body) => REQUEST_TIMEOUT + (typeof body === "string" ? body.length / BYTES_PER_MILLISECOND : 0);

/**
 * @param {unknown} cause
 * @returns {never}
 */
function throwLost(cause) {
  throw new UnreachableError("The connection to the service was lost.", { cause });
}

/** @param {Response} response */
const readText = (response) => response.text().catch(() => "");

/**
 * @param {Response} response
 * @param {Deadline} watch
 */
async function* readEvents(response, watch) {
  const reader = response.body?.getReader();
  if (!reader) throw new InvalidResponseError("The service sent an answer without a body.");
  const parser = new EventParser();
  try {
    for (;;) {
      watch.restart(IDLE_TIMEOUT);
      const { done, value } = await reader.read().catch(throwLost);
      watch.pause();
      if (done) return;
      yield* parser.push(value);
    }
  } finally {
    watch.pause();
    reader.cancel().catch(() => {});
  }
}

/** A signal that is aborted with another one, or when a time has passed. */
class Deadline {
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
