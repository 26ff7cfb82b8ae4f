/** Images of a space: they are uploaded, stored as documents of the model `asset`, and shown in several sizes. */

/** @import { CallOptions } from "./types.js" */
/** @import { Service } from "./service.js" */
import { memberOf, pathOf } from "./transport.js";
import { digestOf } from "./uploads.js";

/** @typedef {Record<string, any>} Json */
/** @typedef {"original" | "thumbnail" | "small" | "medium" | "large"} AssetSize */
/** @typedef {{filename?: string, alt?: string, tags?: string[]}} AssetTexts */

/** The service refuses a longer one. */
const MAX_FILENAME = 255;

/**
 * Make what is done with the images of a space. Lists, changes and deletions are those of documents of the model `asset`.
 *
 * @param {Service} service
 * @param {string} site
 * @param {string} environment
 */
export function makeAssets(service, site, environment) {
  const store = (/** @type {{uploadRef: string, filename: string} & AssetTexts} */ asset, /** @type {any} */ options) =>
    memberOf("document", service.persist("POST", pathOf("assets", site, environment), { ...options, body: asset }));
  const fileOf = (/** @type {string} */ id, /** @type {AssetSize} */ size) =>
    pathOf("content", site, environment, "assets", id, "files", size);
  return {
    /**
     * Upload a file, and store it. The same file is stored once.
     *
     * @param {Blob} file A JPEG, PNG, GIF, WebP or AVIF of at most 15 MB, an SVG (1 MB), a PDF (50 MB), an MP4 or WebM (100 MB).
     * @param {AssetTexts} [texts] The filename is that of a `File` without one.
     * @param {CallOptions} [options]
     * @returns {Promise<Json>} The document of the asset.
     */
    upload: async (file, { filename, ...texts } = {}, options = {}) => {
      const bytes = new Uint8Array(await file.arrayBuffer());
      const announcement = { kind: "media", bytes: bytes.length, sha256: await digestOf(bytes) };
      const upload = await service.persist("POST", "/uploads", { ...options, body: announcement });
      await service.transport.put(upload.url, bytes, upload.headers, options.signal);
      const name = (filename ?? /** @type {File} */ (file).name) || "image";
      return store({ uploadRef: upload.ref, filename: name.slice(0, MAX_FILENAME), ...texts }, options);
    },
    /**
     * Store an image that is uploaded already. The request may be repeated.
     *
     * @param {{uploadRef: string, filename: string} & AssetTexts} asset
     * @param {CallOptions} [options]
     * @returns {Promise<Json>} The document of the asset.
     */
    store,
    /**
     * Return an address at which anybody sees an image for 15 minutes, such as in an `<img>`.
     *
     * @param {string} id
     * @param {AssetSize} [size] Of a smaller image, it is the original.
     * @param {CallOptions} [options]
     * @returns {Promise<string>}
     */
    addressOf: (id, size = "original", options = {}) =>
      memberOf(
        "url",
        service.request("GET", fileOf(id, size), { ...options, headers: { accept: "application/json" } }),
      ),
    /**
     * Let a model that sees images fill the alternative text, the description and the tags that are empty.
     *
     * @param {string} id
     * @param {{credentialId?: string, modelId?: string, locale?: string}} [request]
     * @param {CallOptions} [options]
     * @returns {Promise<Json>} The document of the asset.
     */
    describe: (id, request = {}, options = {}) =>
      memberOf(
        "document",
        service.request("POST", pathOf("asset-descriptions", site, environment, id), { ...options, body: request }),
      ),
  };
}
