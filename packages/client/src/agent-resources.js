/** Agents, and the calls of theirs that wait for a person. */

/** @import { CallOptions } from "./types.js" */
/** @import { Service } from "./service.js" */
import { memberOf, pathOf } from "./transport.js";

/** @typedef {Record<string, any>} Json */

/** @param {Service} service */
export function makeAgents(service) {
  return {
    /**
     * List the agents that the caller may ask.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: (options) => memberOf("agents", service.request("GET", pathOf("agents"), options)),
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: (id, options) => memberOf("agent", service.request("GET", pathOf("agents", id), options)),
  };
}

/** @param {Service} service */
export function makeApprovals(service) {
  return {
    /**
     * List a page of the calls that wait for a decision, the oldest first.
     *
     * @param {{cursor?: string, limit?: number} & CallOptions} [page]
     * @returns {Promise<{approvals: Json[], nextCursor?: string}>}
     */
    list: (page) => service.readPage(pathOf("approvals"), page),
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: (id, options) => memberOf("approval", service.request("GET", pathOf("approvals", id), options)),
    /**
     * Approve or deny a call. The first decision counts, and the same one may be sent again.
     *
     * @param {string} id
     * @param {{approved: boolean, reason?: string, input?: Json, inputHash?: string}} decision
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    decide: (id, decision, options) =>
      memberOf("approval", service.persist("POST", pathOf("approvals", id), { body: decision, ...options })),
    /**
     * List a page of what was decided, the newest first.
     *
     * @param {{cursor?: string, limit?: number} & CallOptions} [page]
     * @returns {Promise<{decisions: Json[], nextCursor?: string}>}
     */
    decisions: (page) => service.readPage(pathOf("approval-decisions"), page),
    /**
     * See which calls need a person.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    policy: (options) => service.request("GET", pathOf("approval-policy"), options),
    /**
     * Set all of the policy at once, for turns that start from now on.
     *
     * @param {Json} policy
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    setPolicy: (policy, options) => service.request("PUT", pathOf("approval-policy"), { body: policy, ...options }),
  };
}
