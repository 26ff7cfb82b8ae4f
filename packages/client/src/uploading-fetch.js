/**
 * A `fetch` for an editor that has a client of its own: what is too large for one request goes through uploads, and
 * everything else passes unchanged.
 *
 *     window.fetch = uploadingFetch();
 */

import { ALREADY_UPLOADED, MAX_REQUEST_BYTES, requestBytes, Uploads } from "./uploads.js";

const LARGE = /^(.*\/admin\/api\/ai)\/(chat\/[^/?]+|tool-result)(?:\?|$)/;

/**
 * Make a `fetch` that uploads.
 *
 * @param {typeof fetch} [inner] What sends the requests.
 * @returns {typeof fetch}
 */
export function uploadingFetch(inner = globalThis.fetch.bind(globalThis)) {
  const uploads = new Uploads();
  return async (input, init) => {
    const [, base] = LARGE.exec(input instanceof Request ? input.url : String(input)) ?? [];
    if (base === undefined) return inner(input, init);
    const body = init?.body ?? (input instanceof Request ? await input.clone().text() : undefined);
    if (typeof body !== "string" || requestBytes(body) <= MAX_REQUEST_BYTES) return inner(input, init);
    const content = parseBody(body);
    if (!content) return inner(input, init);
    const { headers, credentials, signal } = { ...(input instanceof Request && memberOf(input)), ...init };
    const ask = new Headers(headers);
    ask.set("content-type", "application/json");
    ask.delete("idempotency-key");
    try {
      const announce = async (/** @type {unknown} */ announcement) => {
        const text = JSON.stringify(announcement);
        const request = { method: "POST", headers: ask, credentials, signal, body: text };
        return (await check(await inner(`${base}/uploads`, request))).json();
      };
      const put = async (/** @type {string} */ to, /** @type {any} */ bytes, /** @type {HeadersInit} */ given) => {
        const request = {
          method: "PUT",
          headers: given,
          body: bytes,
          credentials: /** @type {const} */ ("omit"),
          signal,
        };
        const response = await inner(to, request);
        if (response.status !== ALREADY_UPLOADED) check(response);
      };
      return await inner(input, { ...init, body: await uploads.fit(content, announce, put) });
    } catch (refused) {
      if (refused instanceof Response) return refused;
      throw refused;
    }
  };
}

/** A body that is no object is for the service to refuse. @param {string} text */
function parseBody(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/**
 * @param {Request} request
 * @returns {RequestInit}
 */
const memberOf = ({ headers, credentials, signal }) => ({ headers, credentials, signal });

/** @param {Response} response */
function check(response) {
  if (!response.ok) throw response;
  return response;
}
