/** The image of an asset. Its address is asked for when it comes into view, and again before it expires. */

import { h } from "../dom.js";

/** @import { SpaceView } from "./space-page.js" */
/** @typedef {"thumbnail" | "small" | "medium" | "large" | "original"} AssetSize */

/** An address is good for 15 minutes. */
const KEPT_MS = 10 * 60_000;
/** @type {Map<string, {url: Promise<string>, until: number}>} */
const addresses = new Map();
/** As many are remembered as a person may have scrolled through. */
const MAX_ADDRESSES = 500;

/**
 * Make the image of an asset, without words: what is beside it names it.
 *
 * @param {SpaceView} view
 * @param {string} id
 * @param {AssetSize} size
 * @returns {HTMLElement} A frame of its final size. It has the class `missing` if there is no image.
 */
export function assetImage(view, id, size) {
  const image = h("img", { alt: "", decoding: "async", draggable: false });
  const frame = h("span", { class: "asset-image" }, image);
  const fail = () => frame.classList.add("missing");
  image.addEventListener("error", () => image.getAttribute("src") && fail());
  const load = async () => {
    try {
      image.src = await addressOf(view, id, size);
    } catch {
      if (!view.context.signal.aborted) fail();
    }
  };
  const watcher = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      watcher.disconnect();
      load();
    },
    { rootMargin: "200px" },
  );
  watcher.observe(frame);
  view.context.signal.addEventListener("abort", () => watcher.disconnect());
  return frame;
}

/** @param {SpaceView} view @param {string} id @param {AssetSize} size */
function addressOf({ content, context, linkTo }, id, size) {
  const name = `${linkTo("media", id)} ${size}`;
  const known = addresses.get(name);
  if (known && known.until > Date.now()) return known.url;
  const url = content.assets.addressOf(id, size, { signal: context.signal });
  addresses.set(name, { url, until: Date.now() + KEPT_MS });
  url.catch(() => addresses.delete(name));
  if (addresses.size > MAX_ADDRESSES) addresses.delete(/** @type {string} */ (addresses.keys().next().value));
  return url;
}
