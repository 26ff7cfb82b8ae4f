/** The images of a space, as a grid. */

import { emptyView, h, showLoaded } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";
import { assetImage } from "./asset-image.js";
import { makeDocumentPages } from "./list-pages.js";
import { uploadPlace } from "./media-upload.js";
import { refreshRegularly } from "./refresh.js";

/** @import { SpaceView } from "./space-page.js" */

export const ASSET_MODEL = "asset";
const PAGE_SIZE = 60;

/** @param {HTMLElement} target @param {SpaceView} view */
export function showMedia(target, view) {
  const grid = new MediaGrid(view);
  if (view.may.has("write")) target.append(uploadPlace(view, () => grid.load({ isRefresh: true })));
  target.append(grid.element);
  refreshRegularly(view.context, () => grid.load({ isRefresh: true }));
  return grid.load();
}

class MediaGrid {
  #pages;
  /** What is shown of an asset, so that an image that has not changed stays as it is. @type {Map<string, HTMLElement>} */
  #cells = new Map();
  #shown = "";

  /** @param {SpaceView} view */
  constructor(view) {
    this.view = view;
    this.element = h("div", { class: "media" });
    this.#pages = makeDocumentPages(view, ASSET_MODEL, () => ({}), PAGE_SIZE);
  }

  /** @param {{isRefresh?: boolean}} [options] */
  load(options) {
    return showLoaded(
      this.element,
      () => this.#pages.read(),
      (page) => this.#render(page),
      options,
    );
  }

  /** @param {import("./list-pages.js").DocumentPage} page @returns {any} Null if it is what is shown. */
  #render(page) {
    const { documents: assets, total, nextCursor } = page;
    const { none, noneText, count } = words.media;
    const state = JSON.stringify([assets.map(({ id, version }) => [id, version]), total, nextCursor]);
    if (state === this.#shown && !this.element.querySelector(".problem")) return null;
    this.#shown = state;
    if (!assets.length) return emptyView(none, noneText);
    const cells = new Map(assets.map((asset) => [`${asset.id} ${asset.version}`, asset]));
    this.#cells = new Map([...cells].map(([key, asset]) => [key, this.#cells.get(key) ?? this.#cell(asset)]));
    return [
      h("p", { class: "quiet-text", role: "status" }, count(total, formatCount(total))),
      h("ul", { class: "media-grid" }, ...this.#cells.values()),
      this.#pages.buttons(page, () => this.load(), total),
    ];
  }

  /** @param {any} asset */
  #cell({ id, title }) {
    const name = h("bdi", { class: "media-name" }, title || id);
    return h("li", {}, h("a", { href: this.view.linkTo("media", id) }, assetImage(this.view, id, "thumbnail"), name));
  }
}
