/** What a tenant has registered: tools that are endpoints of its own, and webhooks. */

/** @import { CallOptions } from "./types.js" */
/** @import { Service } from "./service.js" */
import { memberOf, pathOf } from "./transport.js";

/** @typedef {Record<string, any>} Json */

/** Tools are registered beside the API, where other services expect it. */
const BESIDE_API = { apiPath: "" };

/** @param {Service} service */
export function makeRemoteTools(service) {
  return {
    /**
     * List the remote tools, without the values of their headers.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: (options) => memberOf("tools", service.request("GET", pathOf("tools"), { ...options, ...BESIDE_API })),
    /**
     * Register a tool. The signing secret of a new one is not shown again.
     *
     * @param {{manifest: Json, endpoint: string, staticHeaders?: Record<string, string>, scopes?: string[], forwardAuthorization?: boolean, replace?: boolean}} tool
     * @param {CallOptions} [options]
     * @returns {Promise<{tool: Json, signingSecret?: string}>}
     */
    register: (tool, options) =>
      service.request("POST", pathOf("tools", "register"), { body: tool, ...options, ...BESIDE_API }),
    /**
     * Enable or disable a tool, or change its headers or its signing secret.
     *
     * @param {string} name
     * @param {{enabled?: boolean, staticHeaders?: Record<string, string>, rotateSigningSecret?: boolean}} change
     * @param {CallOptions} [options]
     * @returns {Promise<{tool: Json, signingSecret?: string}>}
     */
    update: (name, change, options) =>
      service.request("PATCH", pathOf("tools", name), { body: change, ...options, ...BESIDE_API }),
    /**
     * Turn on a built-in tool, or replace its key.
     *
     * @param {string} name
     * @param {{apiKey?: string, options?: Record<string, string>}} [settings]
     * @param {CallOptions} [options]
     * @returns {Promise<{tool: Json}>}
     */
    turnOn: (name, settings = {}, options = {}) =>
      service.request("PUT", pathOf("tools", name), { body: settings, ...options, ...BESIDE_API }),
    /**
     * @param {string} name
     * @param {CallOptions} [options]
     */
    remove: (name, options) => service.request("DELETE", pathOf("tools", name), { ...options, ...BESIDE_API }),
  };
}

/** @param {Service} service */
export function makeWebhooks(service) {
  return {
    /**
     * List the webhooks, without their secrets.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: (options) => memberOf("webhooks", service.request("GET", pathOf("webhooks"), options)),
    /**
     * Register a webhook. Its signing secret is not shown again.
     *
     * @param {{url: string, events?: string[], mayAnswer?: boolean}} webhook
     * @param {CallOptions} [options]
     * @returns {Promise<{webhook: Json, signingSecret: string}>}
     */
    create: (webhook, options) => service.request("POST", pathOf("webhooks"), { body: webhook, ...options }),
    /**
     * Change a webhook, or turn it on or off.
     *
     * @param {string} id
     * @param {{url?: string, events?: string[], enabled?: boolean, mayAnswer?: boolean}} change
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    update: (id, change, options) =>
      memberOf("webhook", service.request("PATCH", pathOf("webhooks", id), { body: change, ...options })),
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     */
    remove: (id, options) => service.request("DELETE", pathOf("webhooks", id), options),
    /**
     * See what was delivered to a webhook and what was not, the newest first.
     *
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    deliveries: (id, options) =>
      memberOf("deliveries", service.request("GET", pathOf("webhooks", id, "deliveries"), options)),
    /**
     * Deliver an event again.
     *
     * @param {string} id
     * @param {string} deliveryId
     * @param {CallOptions} [options]
     */
    redeliver: (id, deliveryId, options) =>
      service.request("POST", pathOf("webhooks", id, "deliveries", deliveryId, "redeliver"), options),
  };
}
