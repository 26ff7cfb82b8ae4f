/** The settings of a tenant: credentials, defaults, budgets, keys for servers, and what is exported or erased. */

/** @import { CallOptions } from "./types.js" */
/** @import { Service } from "./service.js" */
import { memberOf, pathOf } from "./transport.js";

/** @typedef {Record<string, any>} Json */

/** @param {Service} service */
export function makeCredentials(service) {
  return {
    /**
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: (options) => memberOf("credentials", service.request("GET", pathOf("credentials"), options)),
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: (id, options) => memberOf("credential", service.request("GET", pathOf("credentials", id), options)),
    /**
     * @param {{providerId: string, authMode: "apiKey" | "baseUrl", displayLabel: string, apiKey?: string,
     *   baseUrl?: string}} body
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    create: (body, options) =>
      memberOf("credential", service.request("POST", pathOf("credentials"), { body, ...options })),
    /**
     * @param {string} id
     * @param {{displayLabel?: string, apiKey?: string, baseUrl?: string}} change
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    update: (id, change, options) =>
      memberOf("credential", service.request("PUT", pathOf("credentials", id), { body: change, ...options })),
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     */
    remove: (id, options) => service.request("DELETE", pathOf("credentials", id), options),
    /**
     * Ask the provider now whether it accepts the key.
     *
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<{ok: boolean, modelCount?: number, error?: string}>}
     */
    test: (id, options) => service.request("POST", pathOf("credentials", id, "test"), options),
  };
}

/** @param {Service} service */
export function makeDefaults(service) {
  return {
    /**
     * See the default model of each scope that has one.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<Record<string, {credentialId: string, modelId: string}>>}
     */
    list: (options) => memberOf("defaults", service.request("GET", pathOf("defaults"), options)),
    /**
     * @param {string} scope
     * @param {{credentialId: string, modelId: string}} body
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    update: (scope, body, options) =>
      memberOf("default", service.request("PUT", pathOf("defaults", scope), { body, ...options })),
    /**
     * @param {string} scope
     * @param {CallOptions} [options]
     */
    remove: (scope, options) => service.request("DELETE", pathOf("defaults", scope), options),
  };
}

/** @param {Service} service */
export function makeBudgets(service) {
  return {
    /**
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: (options) => service.request("GET", pathOf("budgets"), options),
    /**
     * Set all limits at once: an amount that is left out is unlimited.
     *
     * @param {Json} body
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    update: (body, options) => service.request("PUT", pathOf("budgets"), { body, ...options }),
  };
}

/** @param {Service} service */
export function makeApiKeys(service) {
  return {
    /**
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: (options) => memberOf("apiKeys", service.request("GET", pathOf("api-keys"), options)),
    /**
     * Create a key for a server or, with `conversation`, one of the Conversation API. Its text is not shown again.
     *
     * @param {{label: string, capabilities?: string[], conversation?: Json, scopes?: string[], expiresInSeconds?: number}} body
     * @param {CallOptions} [options]
     * @returns {Promise<{apiKey: Json, key: string}>}
     */
    create: (body, options) => service.request("POST", pathOf("api-keys"), { body, ...options }),
    /**
     * Change the label or the rules of a key of the Conversation API. Members that are left out stay.
     *
     * @param {string} id
     * @param {{label?: string, conversation?: Json}} change
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    update: (id, change, options) =>
      memberOf("apiKey", service.request("PATCH", pathOf("api-keys", id), { body: change, ...options })),
    /**
     * Give a key a new text. The old one stays valid for a day, or so many seconds.
     *
     * @param {string} id
     * @param {{overlapSeconds?: number}} [body]
     * @param {CallOptions} [options]
     * @returns {Promise<{apiKey: Json, key: string}>}
     */
    rotate: (id, body = {}, options = {}) =>
      service.request("POST", pathOf("api-keys", id, "rotate"), { body, ...options }),
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     */
    remove: (id, options) => service.request("DELETE", pathOf("api-keys", id), options),
  };
}

/**
 * @param {Service} service
 * @param {"exports" | "erasures"} kind
 */
export function makePrivacyJobs(service, kind) {
  return {
    /**
     * Begin to export or to erase what is stored of a conversation, a user or the tenant.
     *
     * @param {{conversationId: string} | {userId: string} | {tenant: true}} subject
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    create: (subject, options) => memberOf("job", service.request("POST", pathOf(kind), { body: subject, ...options })),
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: (id, options) => memberOf("job", service.request("GET", pathOf(kind, id), options)),
  };
}
