/** Requests to one service. Only a refused token is tried again here. */

/** @import { FermataOptions, TurnEvent } from "./types.js" */
import { Deadline, untilAborted } from "./deadline.js";
import { errorFromResponse, FermataError, InvalidResponseError, UnreachableError } from "./errors.js";
import { readBlob, readEvents, readJson } from "./response-body.js";
import { ALREADY_UPLOADED } from "./uploads.js";

export const API_PATH = "/admin/api/ai";
const REQUEST_TIMEOUT = 30_000;
/** The bytes of a body that a slow connection sends in a millisecond. */
const BYTES_PER_MILLISECOND = 50;
/** The code of an upload that was refused, whatever its status. */
const UPLOAD_REFUSED = "uploadRefused";
const TOOL_NAMES = { fermata: "seed", instatic: "prefixed" };

/**
 * @typedef {object} RequestOptions
 * @property {unknown} [body] Sent as JSON.
 * @property {Record<string, string | number | boolean | undefined>} [query]
 * @property {Record<string, string | undefined>} [headers]
 * @property {AbortSignal} [signal]
 * @property {string} [apiPath] Where the path begins, in place of the API's own.
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
    return this.#send(method, path, options, async (response, watch) => {
      if (response.status !== 204) return readJson(response, watch);
      if (method === "GET") throw new InvalidResponseError("The service sent an answer without a body.");
      return undefined;
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
    return this.#send("GET", path, options, readBlob);
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
    const watch = new Deadline(signal);
    try {
      watch.restart(timeoutOf(bytes));
      const init = { method: "PUT", headers, body, credentials: /** @type {const} */ ("omit"), signal: watch.signal };
      const response = await this.#fetchOnce(url, init);
      if (response.ok || response.status === ALREADY_UPLOADED) return;
      throw uploadError(response);
    } catch (error) {
      throw watch.explain(error);
    } finally {
      watch.end();
    }
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
   * @param {RequestOptions | undefined} options
   * @param {(response: Response, watch: Deadline) => Promise<T>} read
   * @returns {Promise<T>}
   */
  async #send(method, path, options = {}, read) {
    const watch = new Deadline(options.signal);
    try {
      watch.restart(timeoutOf(options.body));
      return await read(await this.#open(method, path, { ...options, signal: watch.signal }), watch);
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
      const response = await this.#fetchOnce(this.#urlOf(path, options), {
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
   * Ask for a token. A provider that fails is like a service that does not answer: the next attempt may succeed. One that
   * throws an error of this package has decided itself.
   *
   * @param {boolean} refresh
   * @param {AbortSignal} [signal]
   */
  async #fetchToken(refresh, signal) {
    if (typeof this.#token !== "function") return this.#token?.trim();
    try {
      const token = await untilAborted(this.#token({ refresh }), signal);
      return typeof token === "string" ? token.trim() : "";
    } catch (cause) {
      if (signal?.aborted || cause instanceof FermataError) throw cause;
      throw new UnreachableError("There is no token to ask the service with.", { cause });
    }
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
   * @param {RequestOptions} options
   */
  #urlOf(path, { query = {}, apiPath = API_PATH }) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    return `${this.#baseUrl}${apiPath}${path}${text && `?${text}`}`;
  }

  /**
   * @param {RequestOptions} options
   * @param {boolean} refresh
   */
  async #headersOf(options, refresh) {
    const token = await this.#fetchToken(refresh, options.signal);
    const headers = {
      ...(options.body !== undefined && { "content-type": "application/json" }),
      ...(token && { authorization: `Bearer ${token}` }),
      ...(this.#toolNames && { "fermata-tool-names": this.#toolNames }),
      ...options.headers,
    };
    const given = Object.entries(headers).filter(([, value]) => value !== undefined);
    return /** @type {Record<string, string>} */ (Object.fromEntries(given));
  }
}

/**
 * Return a member of an answer.
 *
 * @param {string} name
 * @param {Promise<any>} answer
 * @returns {Promise<any>}
 */
export async function memberOf(name, answer) {
  return (await answer)[name];
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
function timeoutOf(body) {
  const isMeasured = typeof body === "string" || body instanceof Uint8Array;
  return REQUEST_TIMEOUT + (isMeasured ? body.length / BYTES_PER_MILLISECOND : 0);
}

/**
 * Make the error of an upload that the storage does not take. No right of the user's account is missing.
 *
 * @param {Response} response
 */
function uploadError({ status, headers }) {
  const error = errorFromResponse(status, "", headers);
  error.message = `The storage did not take an upload (status ${status}).`;
  if (error.retryable) return error;
  error.code = UPLOAD_REFUSED;
  error.hint = "Its UploadOrigins must name this page's origin.";
  return error;
}

/** @param {Response} response */
const readText = (response) => response.text().catch(() => "");
