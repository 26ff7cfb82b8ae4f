/** The images of a space, as a grid. */

import { emptyView, h, showLoaded } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";
import { assetImage } from "./asset-image.js";
import { uploadPlace } from "./media-upload.js";
import { readPages } from "./read-pages.js";
import { refreshRegularly } from "./refresh.js";

/** @import { SpaceView } from "./space-page.js" */

export const ASSET_MODEL = "asset";
const PAGE_SIZE = 60;

/** @param {HTMLElement} target @param {SpaceView} view */
export function showMedia(target, view) {
  const grid = new MediaGrid(view);
  target.append(
    uploadPlace(view, () => grid.load({ isRefresh: true })),
    grid.element,
  );
  refreshRegularly(view.context, () => grid.load({ isRefresh: true }));
  return grid.load();
}

class MediaGrid {
  /** How many pages are shown. */
  #pages = 1;
  /** What is shown of an asset, so that an image that has not changed stays as it is. @type {Map<string, HTMLElement>} */
  #cells = new Map();
  #shown = "";

  /** @param {SpaceView} view */
  constructor(view) {
    this.view = view;
    this.element = h("div", { class: "media" });
  }

  /** @param {{isRefresh?: boolean}} [options] */
  load(options) {
    return showLoaded(
      this.element,
      () => this.#read(),
      (page) => this.#render(page),
      options,
    );
  }

  #read() {
    return readPages(this.view, ASSET_MODEL, { limit: PAGE_SIZE }, this.#pages);
  }

  /** @param {{documents: any[], total: number, hasMore: boolean}} page @returns {any} Null if it is what is shown. */
  #render({ documents: assets, total, hasMore }) {
    const { none, noneText, count, more } = words.media;
    const state = JSON.stringify([assets.map(({ id, version }) => [id, version]), total, hasMore]);
    if (state === this.#shown && !this.element.querySelector(".problem")) return null;
    this.#shown = state;
    if (!assets.length) return emptyView(none, noneText);
    const cells = new Map(assets.map((asset) => [`${asset.id} ${asset.version}`, asset]));
    this.#cells = new Map([...cells].map(([key, asset]) => [key, this.#cells.get(key) ?? this.#cell(asset)]));
    const next = () => {
      this.#pages += 1;
      return this.load();
    };
    return [
      h("p", { class: "quiet-text", role: "status" }, count(total, formatCount(total))),
      h("ul", { class: "media-grid" }, ...this.#cells.values()),
      hasMore && h("button", { type: "button", class: "button more", onclick: next }, more),
    ];
  }

  /** @param {any} asset */
  #cell({ id, title }) {
    const name = h("bdi", { class: "media-name" }, title || id);
    return h("li", {}, h("a", { href: this.view.linkTo("media", id) }, assetImage(this.view, id, "thumbnail"), name));
  }
}
