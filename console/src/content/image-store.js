/** Store images for somebody, in the space or, where changes are reviewed, in a change set of this visit. */

/** @import { SpaceView } from "./space-page.js" */

/**
 * Make a function that stores an image, and returns its asset; `waitsIn` is the change set in which it waits for a review.
 *
 * The first image that has to wait begins the change set, and all others of this visit go to it. If it was merged or
 * discarded meanwhile, the image fails, and what is tried again begins another one.
 *
 * @param {Pick<SpaceView["content"], "assets" | "changeSets">} content
 * @param {string} title Of the change set.
 * @param {AbortSignal} signal
 */
export function makeImageStore(content, title, signal) {
  let changeSet = "";
  const upload = (/** @type {File} */ file, /** @type {object} */ texts) =>
    content.assets.upload(file, texts, { signal });
  const uploadForReview = async (/** @type {File} */ file) => {
    changeSet ||= (await content.changeSets.begin({ title }, { signal })).id;
    try {
      const asset = await upload(file, { changeSet });
      return asset.changeSet === changeSet ? { ...asset, waitsIn: changeSet } : asset; // else it is live already
    } catch (error) {
      if (/** @type {any} */ (error).status === 409) changeSet = "";
      throw error;
    }
  };
  return async (/** @type {File} */ file) => {
    if (changeSet) return uploadForReview(file);
    try {
      return await upload(file, {});
    } catch (error) {
      if (/** @type {any} */ (error).code !== "reviewRequired") throw error;
      return uploadForReview(file);
    }
  };
}
