/** Who may work in a space, and how healthy it is. */

/** @import { CallOptions } from "./types.js" */
/** @import { Service } from "./service.js" */
import { memberOf, pathOf } from "./transport.js";

/** @typedef {{user: string, role: string, models?: string[], locales?: string[]}} SpaceMember Without `models` or `locales`, all. */
/** @typedef {{role: "viewer" | "reviewer" | "editor", models?: string[], locales?: string[]}} MemberRights */
/** @typedef {{model: string, field: string, kind: string, severity: "critical" | "error" | "warning", message: string}} SchemaWarning */
/**
 * @typedef {object} SpaceHealth
 * @property {boolean} valid
 * @property {number} healthScore From 0 to 100.
 * @property {number} modelCount
 * @property {number} validModels
 * @property {SchemaWarning[]} warnings
 * @property {{status: "ok" | "warning" | "blocked", open: number, warnFrom: number, refuseFrom: number}} changeSets
 */

/** @param {Service} service @param {string} path */
export function makeMembers(service, path) {
  return {
    /**
     * List the members. Where `isListed` is false, rights alone say who may do what.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<{isListed: boolean, members: SpaceMember[]}>}
     */
    list: (options) => service.request("GET", path, options),
    /**
     * Say what a user may do. The first member begins the list: from then on, users without a row may do nothing.
     *
     * @param {string} user
     * @param {MemberRights} rights
     * @param {CallOptions} [options]
     * @returns {Promise<SpaceMember>}
     */
    put: (user, rights, options) =>
      memberOf("member", service.request("PUT", path + pathOf(user), { ...options, body: rights })),
    /**
     * Remove a member. The list stays, even if nobody is left on it.
     *
     * @param {string} user
     * @param {CallOptions} [options]
     */
    remove: (user, options) => service.request("DELETE", path + pathOf(user), options),
    /**
     * Delete the list, so that rights alone count again.
     *
     * @param {CallOptions} [options]
     */
    removeList: (options) => service.request("DELETE", path, options),
  };
}

/** @param {Service} service @param {string} path */
export function makeHealth(service, path) {
  return {
    /**
     * See what is wrong in the models, and how many change sets wait.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<SpaceHealth>}
     */
    get: (options) => service.request("GET", path, options),
  };
}
