/** Ways into and out of a space: its search, tokens with which sites read it, exports and imports. */

/** @import { CallOptions } from "./types.js" */
/** @import { Service } from "./service.js" */
import { memberOf, pathOf } from "./transport.js";

/** @typedef {Record<string, any>} Json */
/** @typedef {{credentialId?: string, modelId?: string}} SearchModel */

/** @param {Service} service @param {string} site @param {string} environment */
export function makeSearch(service, site, environment) {
  const index = pathOf("content-index", site, environment);
  return {
    /**
     * Find documents, models and images, the best matches first.
     *
     * @param {string} query
     * @param {{type?: "page" | "section_def" | "collection" | "entry" | "image", limit?: number}} [filter]
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    find: (query, filter = {}, options = {}) =>
      memberOf(
        "matches",
        service.request("GET", pathOf("content-search", site, environment), {
          ...options,
          query: { query, ...filter },
        }),
      ),
    /**
     * See with which model texts are compared. Both members are empty for the search without a model.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<{credentialId: string, modelId: string}>}
     */
    model: (options) => service.request("GET", index, options),
    /**
     * Choose the model. Index the space afterwards.
     *
     * @param {SearchModel} model
     * @param {CallOptions} [options]
     * @returns {Promise<{credentialId: string, modelId: string}>}
     */
    setModel: (model, options) => service.request("PUT", index, { ...options, body: model }),
    /**
     * Index the next documents. Repeat it with the `cursor` of the response until there is none.
     *
     * @param {{cursor?: string, again?: boolean}} [step]
     * @param {CallOptions} [options]
     * @returns {Promise<{seen: number, written: number, cursor?: string}>}
     */
    index: (step = {}, options = {}) => service.persist("POST", index, { ...options, body: step }),
  };
}

/** @param {Service} service @param {string} path */
export function makeDeliveryTokens(service, path) {
  return {
    /**
     * List the tokens without their texts.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: (options) => memberOf("deliveryTokens", service.request("GET", path, options)),
    /**
     * Issue a token with which a site reads content. Its text is not shown again.
     *
     * @param {{mode: "published" | "preview", model?: string, document?: string, expiresInSeconds?: number}} grant
     * @param {CallOptions} [options]
     * @returns {Promise<{token: string, deliveryToken: Json}>}
     */
    issue: (grant, options) => service.request("POST", path, { ...options, body: grant }),
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     */
    revoke: (id, options) => service.request("DELETE", path + pathOf(id), options),
  };
}

/** @param {Service} service @param {string} path */
export function makeTransfer(service, path) {
  return {
    /**
     * Export a part of the space. Without `nextCursor` it is the last one.
     *
     * @param {{format?: "json" | "html", cursor?: string}} [part]
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    export: (part = {}, options = {}) => service.request("GET", `${path}/export`, { ...options, query: { ...part } }),
    /**
     * Import at most 100 models and 25 documents under their own ids. It may be repeated.
     *
     * @param {{models?: Json[], documents?: Json[]}} part
     * @param {CallOptions} [options]
     * @returns {Promise<{model: string, id: string, outcome: "created" | "changed" | "unchanged" | "refused", error?: string}[]>}
     */
    import: (part, options) => memberOf("items", service.persist("POST", `${path}/import`, { ...options, body: part })),
  };
}
