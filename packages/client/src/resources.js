/** The records around turns: thin objects over the service's operations. */

/** @import { CallOptions } from "./types.js" */
/** @import { Service } from "./service.js" */
import { makeAgents, makeApprovals } from "./agent-resources.js";
import { makeRemoteTools, makeWebhooks } from "./remote-resources.js";
import { makeApiKeys, makeBudgets, makeCredentials, makeDefaults, makePrivacyJobs } from "./settings-resources.js";
import { memberOf, pathOf } from "./transport.js";

/** @typedef {Record<string, any>} Json */
/** @typedef {"site" | "content" | "data" | "plugin"} Scope */

/**
 * Make the resources of a service. Every method takes `{signal}` as its last argument or within it.
 *
 * @param {Service} service
 */
export function makeResources(service) {
  return {
    conversations: makeConversations(service),
    credentials: makeCredentials(service),
    defaults: makeDefaults(service),
    budgets: makeBudgets(service),
    bridges: makeBridges(service),
    apiKeys: makeApiKeys(service),
    exports: makePrivacyJobs(service, "exports"),
    erasures: makePrivacyJobs(service, "erasures"),
    models: {
      /**
       * List the models that a credential opens.
       *
       * @param {{providerId: string, credentialId: string} & CallOptions} of
       * @returns {Promise<Json[]>}
       */
      list: ({ providerId, credentialId, signal }) =>
        memberOf(
          "models",
          service.request("GET", pathOf("providers", providerId, "models"), { query: { credentialId }, signal }),
        ),
    },
    audit: {
      /**
       * See the usage by user, scope, model and day.
       *
       * @param {{since?: string | Date, tz?: string, billable?: boolean} & CallOptions} [period]
       * @returns {Promise<Json>}
       */
      get: ({ since, tz, billable, signal } = {}) => {
        const from = since instanceof Date ? since.toISOString() : since;
        return service.request("GET", pathOf("audit"), { query: { since: from, tz, billable }, signal });
      },
    },
    agents: makeAgents(service),
    approvals: makeApprovals(service),
    remoteTools: makeRemoteTools(service),
    webhooks: makeWebhooks(service),
    scopes: {
      /**
       * List the scopes.
       *
       * @param {CallOptions} [options]
       * @returns {Promise<Json[]>}
       */
      list: (options) => memberOf("scopes", service.request("GET", pathOf("scopes"), options)),
    },
    tools: {
      /**
       * List the tools that a model is offered in a scope.
       *
       * @param {string} scope
       * @param {CallOptions} [options]
       * @returns {Promise<import("./service.js").Tool[]>}
       */
      list: (scope, options) => memberOf("tools", service.request("GET", pathOf("tools", scope), options)),
    },
  };
}

/** @param {Service} service */
function makeConversations(service) {
  return {
    /**
     * List a page of conversations, the most recently used first.
     *
     * @param {{scope: Scope, cursor?: string, limit?: number} & CallOptions} page
     * @returns {Promise<{conversations: Json[], nextCursor?: string}>}
     */
    list: (page) => service.readPage(pathOf("conversations"), page),
    /**
     * Get a conversation with its newest messages, or those before a position; `activeTurn` while a turn runs in it.
     *
     * @param {string} id
     * @param {{before?: number | string, limit?: number} & CallOptions} [page]
     * @returns {Promise<{conversation: Json, nextCursor?: string}>}
     */
    get: (id, page) => service.readPage(pathOf("conversations", id), page),
    /**
     * Begin a conversation.
     *
     * @param {{scope: Scope, title?: string, credentialId?: string, modelId?: string}} body
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    create: (body, options) =>
      memberOf("conversation", service.request("POST", pathOf("conversations"), { body, ...options })),
    /**
     * Rename a conversation, or switch its model.
     *
     * @param {string} id
     * @param {{title?: string, credentialId?: string, modelId?: string}} change
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    update: (id, change, options) =>
      memberOf("conversation", service.request("PUT", pathOf("conversations", id), { body: change, ...options })),
    /**
     * Delete a conversation, and end the turn that runs in it.
     *
     * @param {string} id
     * @param {CallOptions} [options]
     */
    remove: (id, options) => service.request("DELETE", pathOf("conversations", id), options),
    /**
     * Fetch an image of a message.
     *
     * @param {string} id
     * @param {string} messageId
     * @param {number} index
     * @param {CallOptions} [options]
     */
    image: (id, messageId, index, options) =>
      service.transport.fetchBlob(pathOf("conversations", id, "messages", messageId, "images", index), options),
  };
}

/** @param {Service} service */
function makeBridges(service) {
  return {
    /**
     * List a page of the workspace's turns, the latest first: those that run or wait, and those that have ended.
     *
     * @param {{cursor?: string, limit?: number} & CallOptions} [page]
     * @returns {Promise<{turns: Json[], nextCursor?: string}>}
     */
    list: (page) => service.readPage(pathOf("turns"), page),
    /**
     * See what a turn did and when: its requests with their usage, and a page of its log.
     *
     * @param {string} id
     * @param {{after?: number} & CallOptions} [page]
     * @returns {Promise<{bridgeId: string, log: Json[], nextAfter?: number} & Json>}
     */
    report: (id, page) => service.readPage(pathOf("bridges", id, "report"), page),
    /**
     * See the state of a turn, and the requests that wait for an answer.
     *
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: (id, options) => service.request("GET", pathOf("bridges", id), options),
    /**
     * End a turn. The request may be repeated.
     *
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<{bridgeId: string, status: "done" | "error" | "cancelled"}>}
     */
    cancel: (id, options) => service.persist("POST", pathOf("bridges", id, "cancel"), options),
    /**
     * List a page of a turn's edits.
     *
     * @param {string} id
     * @param {{cursor?: string} & CallOptions} [page]
     * @returns {Promise<{bridgeId: string, entries: Json[], nextCursor?: string}>}
     */
    journal: (id, page) => service.readPage(pathOf("bridges", id, "journal"), page),
  };
}
