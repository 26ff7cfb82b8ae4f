/**
 * Content that Fermata keeps: spaces, models, documents with their versions, change sets, images, search.
 *
 *     const content = new ContentClient({ baseUrl, token });
 *     const { documents } = content.space("shop", "main");
 *     await documents.update("recipe", "rye", { title: "Rye" }, { ifVersion: 3 });
 */

/** @import { CallOptions, FermataOptions } from "./types.js" */
import { makeAssets } from "./content-assets.js";
import { makeCaptcha } from "./content-captcha.js";
import { makeDeliveryTokens, makeSearch, makeTransfer } from "./content-exchange.js";
import { makeHealth, makeMembers } from "./content-members.js";
import { makeSubmissions } from "./content-submissions.js";
import { Service } from "./service.js";
import { pathOf } from "./transport.js";

/** @typedef {Record<string, any>} Json */
/**
 * @typedef {object} WriteConditions
 * @property {number} [ifVersion] The version that was seen. Another one is refused with status 412.
 * @property {string} [idempotencyKey] Names the write, so that it is carried out once.
 */
/** @typedef {CallOptions & WriteConditions} WriteOptions */
/** @typedef {{limit?: number, cursor?: string, status?: string, category?: string, slug?: string, missing?: string, ids?: string}} DocumentFilter `missing` is a language; `ids` are up to 100, with commas. */
/** @typedef {{slug?: string, title?: string, status?: string, locales?: Record<string, Json>}} DocumentChange */
/** @typedef {ReturnType<typeof makeSpace>} ContentSpace */

export class ContentClient {
  #service;

  /** @param {FermataOptions} [options] Those of `new Fermata()`. */
  constructor(options = {}) {
    this.#service = new Service(options);
    this.spaces = makeSpaces(this.#service);
  }

  /**
   * Return what a space holds: `models`, `documents`, `changeSets`, `assets`, `submissions` and their `captcha`; who may work in it and how healthy it is:
   * `members` and `health`; how it is searched, and how content gets out and in: `search`, `deliveryTokens` and `transfer`.
   *
   * @param {string} site
   * @param {string} [environment]
   */
  space(site, environment = "main") {
    return makeSpace(this.#service, site, environment);
  }

  /**
   * See what the workspace has used of its plan in this month.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<Json>}
   */
  plan(options) {
    return this.#service.request("GET", "/content/plan", options);
  }
}

/** @param {Service} service */
function makeSpaces(service) {
  return {
    /**
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: async (options) => (await service.request("GET", "/content/spaces", options)).spaces,
    /**
     * @param {{site: string, environment?: string, title?: string, locales?: string[], domain?: string}} space
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    create: async (space, options) =>
      (await service.request("POST", "/content/spaces", { ...options, body: space })).space,
    /**
     * Delete a space with all it has. It is found no more at once, and is erased within an hour. It cannot be undone.
     *
     * @param {string} site
     * @param {string} environment
     * @param {CallOptions} [options]
     * @returns {Promise<Json>} The job that erases it.
     */
    remove: async (site, environment, options) => {
      const query = { confirm: `${site}/${environment}` };
      const path = pathOf("content-spaces", site, environment);
      return (await service.request("DELETE", path, { ...options, query })).job;
    },
  };
}

/** @param {Service} service @param {string} site @param {string} environment */
function makeSpace(service, site, environment) {
  const path = pathOf("content", site, environment);
  return {
    models: makeModels(service, `${path}/models`),
    documents: makeDocuments(service, `${path}/documents`),
    changeSets: makeChangeSets(service, `${path}/change-sets`),
    assets: makeAssets(service, site, environment),
    submissions: makeSubmissions(service, `${path}/submissions`),
    captcha: makeCaptcha(service, `${pathOf("content-git", site, environment)}/captcha`),
    members: makeMembers(service, `${path}/members`),
    health: makeHealth(service, `${path}/health`),
    search: makeSearch(service, site, environment),
    deliveryTokens: makeDeliveryTokens(service, `${path}/delivery-tokens`),
    transfer: makeTransfer(service, path),
  };
}

/** @param {Service} service @param {string} path */
function makeModels(service, path) {
  return {
    /**
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: async (options) => (await service.request("GET", path, options)).models,
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: async (id, options) => (await service.request("GET", path + pathOf(id), options)).model,
    /**
     * Create a model, or replace its definition.
     *
     * @param {string} id
     * @param {Json} definition `kind`, `domain`, `title`, `i18n` and `fields`.
     * @param {WriteOptions & {breaking?: "refuse"}} [options] With `breaking`, status 409 and the code `breakingChanges` list
     *   what documents may not fit any more.
     * @returns {Promise<Json>}
     */
    put: async (id, definition, { breaking, ...options } = {}) => {
      const request = { ...writeOptions(options), query: { breaking }, body: definition };
      return (await service.request("PUT", path + pathOf(id), request)).model;
    },
    /**
     * @param {string} id
     * @param {WriteOptions} [options]
     */
    remove: (id, options) => service.request("DELETE", path + pathOf(id), writeOptions(options)),
  };
}

/** @param {Service} service @param {string} path */
function makeDocuments(service, path) {
  return {
    /**
     * List documents in the order in which they were created.
     *
     * @param {string} model
     * @param {DocumentFilter} [filter]
     * @param {CallOptions} [options]
     * @returns {Promise<{documents: Json[], total: number, nextCursor?: string}>}
     */
    list: (model, filter = {}, options = {}) =>
      service.request("GET", path + pathOf(model), { ...options, query: { ...filter } }),
    /**
     * @param {string} model
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    get: async (model, id, options) => (await service.request("GET", path + pathOf(model, id), options)).document,
    /**
     * @param {string} model
     * @param {DocumentChange & {id?: string}} document
     * @param {WriteOptions} [options]
     * @returns {Promise<{document: Json, warnings?: Json[]}>}
     */
    create: (model, document, options) =>
      service.request("POST", path + pathOf(model), { ...writeOptions(options), body: document }),
    /**
     * Change what is named. A field that is null is removed.
     *
     * @param {string} model
     * @param {string} id
     * @param {DocumentChange} change
     * @param {WriteOptions} [options]
     * @returns {Promise<{document: Json, warnings?: Json[]}>}
     */
    update: (model, id, change, options) =>
      service.request("PATCH", path + pathOf(model, id), { ...writeOptions(options), body: change }),
    /**
     * Delete a document. Its versions stay.
     *
     * @param {string} model
     * @param {string} id
     * @param {WriteOptions} [options]
     */
    remove: (model, id, options) => service.request("DELETE", path + pathOf(model, id), writeOptions(options)),
    /**
     * List the versions of a document, the newest first, also of one that was deleted.
     *
     * @param {string} model
     * @param {string} id
     * @param {{limit?: number, before?: number}} [range]
     * @param {CallOptions} [options]
     * @returns {Promise<{versions: Json[], nextBefore?: number}>}
     */
    versions: (model, id, range = {}, options = {}) =>
      service.request("GET", path + pathOf(model, id, "versions"), { ...options, query: { ...range } }),
    /**
     * @param {string} model
     * @param {string} id
     * @param {number} version
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    version: async (model, id, version, options) =>
      (await service.request("GET", path + pathOf(model, id, "versions", version), options)).document,
    /**
     * Make a version the newest one again.
     *
     * @param {string} model
     * @param {string} id
     * @param {number} version
     * @param {WriteOptions} [options]
     * @returns {Promise<{document: Json, warnings?: Json[]}>}
     */
    restore: (model, id, version, options) =>
      service.request("POST", path + pathOf(model, id, "versions", version, "restore"), writeOptions(options)),
  };
}

/** @param {Service} service @param {string} path */
function makeChangeSets(service, path) {
  return {
    /**
     * @param {CallOptions} [options]
     * @returns {Promise<Json[]>}
     */
    list: async (options) => (await service.request("GET", path, options)).changeSets,
    /**
     * @param {{title?: string}} [changeSet]
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    begin: async (changeSet = {}, options = {}) =>
      (await service.request("POST", path, { ...options, body: changeSet })).changeSet,
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     * @returns {Promise<{changeSet: Json, may: ("merge" | "discard")[], documents: Json[]}>}
     */
    get: (id, options) => service.request("GET", path + pathOf(id), options),
    /**
     * Show a change set with a page of its documents, each beside `base`: the version that it has begun with.
     *
     * @param {string} id
     * @param {{limit: number, cursor?: string, model?: string}} range Up to 100 documents; of one model only.
     * @param {CallOptions} [options]
     * @returns {Promise<{changeSet: Json, may: ("merge" | "discard")[], documents: Json[], documentsByModel?: Record<string, number>, nextCursor?: string}>}
     */
    page: (id, range, options) => service.request("GET", path + pathOf(id), { ...options, query: { ...range } }),
    /**
     * Create, change or delete a document in the change set only.
     *
     * @param {string} id
     * @param {string} model
     * @param {string} document
     * @param {DocumentChange & {deleted?: boolean}} change
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    change: async (id, model, document, change, options) =>
      (
        await service.request("PATCH", path + pathOf(id, "documents", model, document), {
          ...options,
          body: change,
        })
      ).document,
    /**
     * Merge all of it at once. Status 409 with the code `mergeConflict` lists in `details.conflicts` what others have changed.
     *
     * @param {string} id
     * The code `breakingChanges` lists what documents may not fit any more; `allowBreaking` merges all the same.
     *
     * @param {{prefer?: "ours" | "theirs", allowBreaking?: boolean}} [decision]
     * @param {CallOptions} [options]
     * @returns {Promise<Json>}
     */
    merge: async (id, decision = {}, options = {}) =>
      (await service.request("POST", path + pathOf(id, "merge"), { ...options, body: decision })).changeSet,
    /**
     * @param {string} id
     * @param {CallOptions} [options]
     */
    discard: (id, options) => service.request("DELETE", path + pathOf(id), options),
  };
}

/**
 * Return the options of a request that writes. It is named, so that it can be repeated after a lost answer.
 *
 * @param {WriteOptions} [options]
 */
function writeOptions({ ifVersion, idempotencyKey, ...options } = {}) {
  const headers = {
    "idempotency-key": idempotencyKey ?? crypto.randomUUID(),
    "if-match": ifVersion === undefined ? undefined : `"${ifVersion}"`,
  };
  return { ...options, headers };
}
