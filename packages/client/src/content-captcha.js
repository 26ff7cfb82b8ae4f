/** The captcha of a site, which visitors solve for the forms that ask for one. */

/** @import { CallOptions } from "./types.js" */
/** @import { Service } from "./service.js" */
import { memberOf } from "./transport.js";

/** @typedef {{service: "turnstile" | "hcaptcha" | "recaptcha", siteKey: string}} SiteCaptcha */

/** @param {Service} service @param {string} path */
export function makeCaptcha(service, path) {
  return {
    /**
     * @param {CallOptions} [options]
     * @returns {Promise<SiteCaptcha | null>} Null for a site without one. Its secret is never shown.
     */
    get: (options) => memberOf("captcha", service.request("GET", path, options)),
    /**
     * Say which captcha all forms of the site have.
     *
     * @param {SiteCaptcha & {secret?: string}} captcha Without `secret`, that of the same service and key stays.
     * @param {CallOptions} [options]
     * @returns {Promise<SiteCaptcha>}
     */
    put: (captcha, options) => memberOf("captcha", service.request("PUT", path, { ...options, body: captcha })),
    /**
     * Forget it. Forms that ask for one take nothing from then on.
     *
     * @param {CallOptions} [options]
     */
    remove: (options) => service.request("DELETE", path, options),
  };
}
