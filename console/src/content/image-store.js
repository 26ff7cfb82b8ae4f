/** Store images for somebody, in the space or, where changes are reviewed, in a change set of this visit. */

/** @import { SpaceView } from "./space-page.js" */

/** The service refuses a longer one. */
const MAX_FILENAME = 255;

/**
 * Make a function that stores an image, and returns its asset; `waitsIn` is the change set in which it waits for a review.
 *
 * The first image that has to wait begins the change set, and what was uploaded is stored there. All others of this visit
 * go to it. If it was merged or discarded meanwhile, the image fails, and what is tried again begins another one.
 *
 * @param {Pick<SpaceView["content"], "assets" | "changeSets">} content
 * @param {string} title Of the change set.
 * @param {AbortSignal} signal
 */
export function makeImageStore(content, title, signal) {
  let changeSet = "";
  const upload = (/** @type {File} */ file, /** @type {object} */ texts) =>
    content.assets.upload(file, texts, { signal });
  const storeForReview = async (/** @type {(changeSet: string) => Promise<any>} */ send) => {
    changeSet ||= (await content.changeSets.begin({ title }, { signal })).id;
    try {
      const asset = await send(changeSet);
      return asset.changeSet === changeSet ? { ...asset, waitsIn: changeSet } : asset; // else it is live already
    } catch (error) {
      if (/** @type {any} */ (error).status === 409) changeSet = "";
      throw error;
    }
  };
  return async (/** @type {File} */ file) => {
    if (changeSet) return storeForReview((changeSet) => upload(file, { changeSet }));
    try {
      return await upload(file, {});
    } catch (error) {
      const { code, details } = /** @type {any} */ (error);
      if (code !== "reviewRequired") throw error;
      /** @type {any} */
      const uploaded = { uploadRef: details.uploadRef, filename: (file.name || "image").slice(0, MAX_FILENAME) };
      return storeForReview((changeSet) => content.assets.store({ ...uploaded, changeSet }, { signal }));
    }
  };
}
