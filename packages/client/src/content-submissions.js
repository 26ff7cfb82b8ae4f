/** What visitors send with forms, and what becomes of it. */

/** @import { CallOptions } from "./types.js" */
/** @import { Service } from "./service.js" */
import { memberOf, pathOf } from "./transport.js";

/** @typedef {Record<string, any>} Json */
/** @typedef {"pending" | "approved" | "rejected" | "spam"} SubmissionStatus */

/** @param {Service} service @param {string} path */
export function makeSubmissions(service, path) {
  return {
    /**
     * List the submissions of a model, the newest first. `data` and `sender` are there for moderators.
     *
     * @param {string} model
     * @param {{status?: SubmissionStatus, limit?: number, cursor?: string}} [filter]
     * @param {CallOptions} [options]
     * @returns {Promise<{submissions: Json[], total: number, nextCursor?: string}>}
     */
    list: (model, filter = {}, options = {}) =>
      service.request("GET", path, { ...options, query: { model, ...filter } }),
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: (id, options) => memberOf("submission", service.request("GET", path + pathOf(id), options)),
    /**
     * Decide about a submission. One that is approved becomes an entry of its model, a draft.
     *
     * @param {string} id
     * @param {SubmissionStatus} status
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    decide: (id, status, options) =>
      memberOf("submission", service.request("PATCH", path + pathOf(id), { ...options, body: { status } })),
    /**
     * Decide about up to 50 submissions, or delete them.
     *
     * @param {string[]} ids
     * @param {SubmissionStatus | "delete"} action
     * @param {CallOptions} [options]
     * @returns {Promise<{id: string, status: number, error?: string}[]>} What became of each.
     */
    decideAll: (ids, action, options) =>
      memberOf("results", service.request("POST", path, { ...options, body: { ids, action } })),
    /**
     * Delete a submission with all that is known of who has sent it.
     *
     * @param {string} id
     * @param {CallOptions} [options]
     */
    remove: (id, options) => service.request("DELETE", path + pathOf(id), options),
  };
}
