/** What turns and resources ask of the service: requests that are retried, uploads, tool lists and answers. */

/** @import { FermataOptions, ReceiptStore, ToolOutput } from "./types.js" */
/** @import { RequestOptions } from "./transport.js" */
/** @import { Schema } from "./schema.js" */
import { callWithRetries, MAX_SILENT_WAIT, wait } from "./backoff.js";
import { FermataError, InvalidResponseError } from "./errors.js";
import { defaultReceipts } from "./receipts.js";
import { pathOf, Transport } from "./transport.js";
import { Uploads } from "./uploads.js";

/** Failures after which a request that nobody waits for long is given up. */
const MAX_RESOURCE_FAILURES = 3;
/** 404: the time is over, or the turn. 409: somebody else has answered. The turn's events say what happened. */
const ALREADY_DECIDED = [404, 409];
/** The service no longer has an upload, or it is another one: or what was said above. */
const UPLOAD_LOST = [404, 409, 410];
/** 400: the result is not one. 413: it is too large. A smaller one may be taken. */
const RESULT_REFUSED = [400, 413];

/**
 * @typedef {object} Tool
 * @property {string} name
 * @property {string} description
 * @property {Schema} inputSchema
 * @property {"server" | "browser" | "remote" | "mcp" | "agent"} execution
 * @property {"read" | "write"} capability
 * @property {string[]} permissions
 */

/**
 * @typedef {object} Answer
 * @property {string} bridgeId
 * @property {string} requestId
 * @property {ToolOutput} result
 * @property {any} [snapshot]
 * @property {string} [revision]
 */

export class Service {
  #uploads = new Uploads();
  /** @type {Map<string, Promise<Map<string, Tool>>>} */
  #toolsByScope = new Map();

  /** @param {FermataOptions} options */
  constructor(options) {
    this.transport = new Transport(options);
    /** @type {ReceiptStore} */
    this.receipts = options.receipts ?? defaultReceipts();
    this.wait = options.wait ?? wait;
    const tell = options.onProblem ?? ((/** @type {Error} */ problem) => console.warn("fermata:", problem));
    /** Tell a problem. Whoever is told may fail itself, and disturbs nothing. */
    this.report = (/** @type {Error} */ problem) => {
      try {
        tell(problem);
      } catch (error) {
        console.error(error);
      }
    };
  }

  /**
   * Send a request. One that may be repeated, also because it has a name, is if it fails for a reason that may pass.
   *
   * @param {string} method
   * @param {string} path
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  request(method, path, options = {}) {
    const isRepeatable = method !== "POST" || options.headers?.["idempotency-key"];
    const limit = isRepeatable ? MAX_RESOURCE_FAILURES : 1;
    let attempts = 0;
    const send = async () => {
      attempts += 1;
      try {
        return await this.transport.request(method, path, options);
      } catch (error) {
        const isGone = method === "DELETE" && attempts > 1 && /** @type {FermataError} */ (error).status === 404;
        if (!isGone) throw error;
        return undefined; // the attempt before has deleted it, and its answer was lost
      }
    };
    return callWithRetries(send, this.wait, options.signal, { limit, maxRetryAfter: MAX_SILENT_WAIT });
  }

  /**
   * Read what has pages.
   *
   * @param {string} path
   * @param {Record<string, any>} [page] Which page, with the signal of the call.
   * @returns {Promise<any>}
   */
  readPage(path, { signal, ...query } = {}) {
    return this.request("GET", path, { query, signal });
  }

  /**
   * Send a request that may be repeated, for longer.
   *
   * @param {string} method
   * @param {string} path
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  persist(method, path, options = {}) {
    return callWithRetries(() => this.transport.request(method, path, options), this.wait, options.signal);
  }

  /**
   * Return the text of a body that fits into one request, after uploading what does not.
   *
   * @param {Record<string, any>} body
   * @param {AbortSignal} [signal]
   * @returns {Promise<string>}
   */
  fit(body, signal) {
    const upload = () =>
      this.#uploads.fit(
        body,
        (announcement) => this.transport.request("POST", "/uploads", { body: announcement, signal }),
        (url, bytes, headers) => this.transport.put(url, bytes, headers, signal),
      );
    return callWithRetries(upload, this.wait, signal, { maxRetryAfter: MAX_SILENT_WAIT });
  }

  /**
   * Return the tools of a scope by name. They are asked for once.
   *
   * @param {string} scope
   * @returns {Promise<Map<string, Tool>>}
   */
  toolsOf(scope) {
    const known = this.#toolsByScope.get(scope) ?? this.#fetchTools(scope);
    this.#toolsByScope.set(scope, known);
    return known;
  }

  /** @param {string} scope */
  async #fetchTools(scope) {
    try {
      const { tools } = await this.persist("GET", pathOf("tools", scope));
      if (!Array.isArray(tools)) throw new InvalidResponseError("The service sent no list of tools.");
      return new Map(/** @type {Tool[]} */ (tools).map((tool) => [tool.name, tool]));
    } catch (error) {
      this.#toolsByScope.delete(scope);
      throw error;
    }
  }

  /**
   * Find out in which scope a turn runs.
   *
   * @param {string} bridgeId
   * @returns {Promise<string>}
   */
  async scopeOf(bridgeId) {
    const { conversationId } = await this.persist("GET", pathOf("bridges", bridgeId));
    const path = pathOf("conversations", String(conversationId));
    const { conversation } = await this.persist("GET", path, { query: { limit: 1 } });
    if (typeof conversation?.scope === "string") return conversation.scope;
    throw new InvalidResponseError("The service sent a conversation without a scope.");
  }

  /**
   * Post the result of a tool request; where the service does not take it, its next smaller form.
   *
   * @param {Answer} answer
   * @param {AbortSignal} [signal]
   * @returns {Promise<boolean>} Whether it was accepted. It is not if somebody else has answered, or the time is over.
   */
  async answer(answer, signal) {
    const forms = resultForms(answer.result);
    for (const [index, result] of forms.entries()) {
      try {
        await this.#post({ ...answer, result }, signal);
        return true;
      } catch (error) {
        signal?.throwIfAborted();
        const { status } = /** @type {FermataError} */ (error);
        if (ALREADY_DECIDED.includes(status)) return false;
        // What is no error of the service is one of the result: it cannot be written as JSON.
        const isRefused = RESULT_REFUSED.includes(status) || !(error instanceof FermataError);
        if (!isRefused || index === forms.length - 1) throw error;
        this.report(/** @type {Error} */ (error));
      }
    }
    return false;
  }

  /**
   * Post an answer; with new uploads where the service no longer has those that it refers to.
   *
   * @param {Answer} answer
   * @param {AbortSignal} [signal]
   */
  async #post(answer, signal) {
    const body = await this.#fitAnswer(answer, signal);
    try {
      await this.persist("POST", "/tool-result", { body, signal });
    } catch (error) {
      const { status } = /** @type {FermataError} */ (error);
      if (!UPLOAD_LOST.includes(status) || !this.#uploads.forget(body)) throw error;
      await this.persist("POST", "/tool-result", { body: await this.#fitAnswer(answer, signal), signal });
    }
  }

  /** Upload anew what a body refers to, the next time. @param {string} body */
  forgetUploads(body) {
    this.#uploads.forget(body);
  }

  /**
   * Return the text of an answer, without the snapshot if it cannot be uploaded: the call was carried out all the same.
   *
   * @param {Answer} answer
   * @param {AbortSignal} [signal]
   */
  async #fitAnswer(answer, signal) {
    try {
      return await this.fit(answer, signal);
    } catch (error) {
      signal?.throwIfAborted();
      this.report(/** @type {Error} */ (error));
      return JSON.stringify({ ...answer, snapshot: undefined });
    }
  }
}

/**
 * Return a result and its smaller forms, the largest first. An edit that was made is never reported as failed.
 *
 * @param {ToolOutput} result
 * @returns {ToolOutput[]}
 */
function resultForms(result) {
  const { inverse, ...withoutInverse } = result;
  const { images, ...withoutImages } = withoutInverse;
  const { ok, data, revision, conflict } = result;
  const note = "The editor's result could not be sent.";
  const outcome = ok && (inverse || revision) ? { ok: true, data: { note } } : { ok: false, error: note };
  const least = { ...outcome, ...(revision && { revision }), ...(conflict && { conflict }) };
  const isObject = data !== null && typeof data === "object" && !Array.isArray(data);
  const seen = { ...(isObject ? data : data !== undefined && { data }), imagesLeftOut: images?.length };
  return [
    result,
    ...(inverse === undefined ? [] : [withoutInverse]),
    ...(ok && images?.length ? [{ ...withoutImages, data: seen }] : []),
    least,
  ];
}
