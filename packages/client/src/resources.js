/** The records around turns: thin objects over the service's operations. */

/** @import { CallOptions } from "./types.js" */
/** @import { Service } from "./service.js" */
import { pathOf } from "./transport.js";

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
      list: async ({ providerId, credentialId, signal }) =>
        (await service.request("GET", pathOf("providers", providerId, "models"), { query: { credentialId }, signal }))
          .models,
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
    scopes: {
      /**
       * List the scopes.
       *
       * @param {CallOptions} [options]
       * @returns {Promise<Json[]>}
       */
      list: async (options) => (await service.request("GET", pathOf("scopes"), options)).scopes,
    },
    tools: {
      /**
       * List the tools that a model is offered in a scope.
       *
       * @param {string} scope
       * @param {CallOptions} [options]
       * @returns {Promise<import("./service.js").Tool[]>}
       */
      list: async (scope, options) => (await service.request("GET", pathOf("tools", scope), options)).tools,
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
    list: ({ signal, ...query }) => service.request("GET", pathOf("conversations"), { query, signal }),
    /**
     * Get a conversation with its newest messages, or those before a position; `activeTurn` while a turn runs in it.
     *
     * @param {string} id
     * @param {{before?: number | string, limit?: number} & CallOptions} [page]
     * @returns {Promise<{conversation: Json, nextCursor?: string}>}
     */
    get: (id, { signal, ...query } = {}) => service.request("GET", pathOf("conversations", id), { query, signal }),
    /**
     * Begin a conversation.
     *
     * @param {{scope: Scope, title?: string, credentialId?: string, modelId?: string}} body
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    create: async (body, options) =>
      (await service.request("POST", pathOf("conversations"), { body, ...options })).conversation,
    /**
     * Rename a conversation, or switch its model.
     *
     * @param {string} id
     * @param {{title?: string, credentialId?: string, modelId?: string}} change
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    update: async (id, change, options) =>
      (await service.request("PUT", pathOf("conversations", id), { body: change, ...options })).conversation,
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
function makeCredentials(service) {
  return {
    /**
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: async (options) => (await service.request("GET", pathOf("credentials"), options)).credentials,
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: async (id, options) => (await service.request("GET", pathOf("credentials", id), options)).credential,
    /**
     * @param {{providerId: string, authMode: "apiKey" | "baseUrl", displayLabel: string, apiKey?: string,
     *   baseUrl?: string}} body
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    create: async (body, options) =>
      (await service.request("POST", pathOf("credentials"), { body, ...options })).credential,
    /**
     * @param {string} id
     * @param {{displayLabel?: string, apiKey?: string, baseUrl?: string}} change
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    update: async (id, change, options) =>
      (await service.request("PUT", pathOf("credentials", id), { body: change, ...options })).credential,
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
function makeDefaults(service) {
  return {
    /**
     * See the default model of each scope that has one.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<Record<string, {credentialId: string, modelId: string}>>}
     */
    list: async (options) => (await service.request("GET", pathOf("defaults"), options)).defaults,
    /**
     * @param {string} scope
     * @param {{credentialId: string, modelId: string}} body
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    update: async (scope, body, options) =>
      (await service.request("PUT", pathOf("defaults", scope), { body, ...options })).default,
    /**
     * @param {string} scope
     * @param {CallOptions} [options]
     */
    remove: (scope, options) => service.request("DELETE", pathOf("defaults", scope), options),
  };
}

/** @param {Service} service */
function makeBudgets(service) {
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
function makeBridges(service) {
  return {
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
    journal: (id, { signal, ...query } = {}) =>
      service.request("GET", pathOf("bridges", id, "journal"), { query, signal }),
  };
}

/** @param {Service} service */
function makeApiKeys(service) {
  return {
    /**
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: async (options) => (await service.request("GET", pathOf("api-keys"), options)).apiKeys,
    /**
     * Create a key for a server. Its text is not shown again.
     *
     * @param {{label: string, capabilities: string[], scopes?: string[], expiresInSeconds?: number}} body
     * @param {CallOptions} [options]
     * @returns {Promise<{apiKey: Json, key: string}>}
     */
    create: (body, options) => service.request("POST", pathOf("api-keys"), { body, ...options }),
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
function makePrivacyJobs(service, kind) {
  return {
    /**
     * Begin to export or to erase what is stored of a conversation, a user or the tenant.
     *
     * @param {{conversationId: string} | {userId: string} | {tenant: true}} subject
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    create: async (subject, options) =>
      (await service.request("POST", pathOf(kind), { body: subject, ...options })).job,
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: async (id, options) => (await service.request("GET", pathOf(kind, id), options)).job,
  };
}
