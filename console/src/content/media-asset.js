/** An image: what it shows, what it is called, and the addresses under which it is found. */

import { announce, askInDialog, field, h, lockWhile, number, problemView, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { AssetForm, listOf, SHARED } from "./asset-form.js";
import { assetImage } from "./asset-image.js";
import { copyButton } from "./copy-button.js";
import { ASSET_MODEL } from "./media.js";
import { makeReadOnly } from "./read-only-form.js";
import { refreshRegularly } from "./refresh.js";

/** @import { SpaceView } from "./space-page.js" */

/** @param {HTMLElement} target @param {SpaceView} view @param {string} id */
export function showAsset(target, view, id) {
  const page = new AssetPage(view, id);
  target.append(h("a", { class: "back", href: view.linkTo("media") }, words.media.back), page.element);
  refreshRegularly(view.context, () => page.refresh());
  return page.load();
}

class AssetPage {
  /** @type {AssetForm | undefined} */
  #form;

  /** @param {SpaceView} view @param {string} id */
  constructor(view, id) {
    this.view = view;
    this.id = id;
    this.element = h("div");
  }

  /** @param {AssetForm} [untouched] Stays if somebody begins to change it while the newest is loaded. */
  load(untouched) {
    return showLoaded(
      this.element,
      () => this.#read(),
      (asset) => (untouched?.isChanged() ? this.#tell(untouched) : this.#render(asset)),
    );
  }

  #read() {
    const { content, context } = this.view;
    return content.documents.get(ASSET_MODEL, this.id, { signal: context.signal });
  }

  /** Show what others have changed, unless something is changed here. */
  async refresh() {
    const form = this.#form;
    if (!form) return;
    const asset = await this.#read().catch(() => undefined);
    if (!asset || form !== this.#form || asset.version === form.asset.version) return;
    if (form.element.hasAttribute("aria-busy")) return; // what is stored is shown, or what stands against it
    if (form.isChanged()) this.#tell(form);
    else await this.load(form);
  }

  /** @param {AssetForm} form */
  #tell(form) {
    form.tellChangedMeanwhile(() => this.load());
  }

  /** @param {any} asset */
  #render(asset) {
    const fields = asset.locales[SHARED] ?? {};
    const image = assetImage(this.view, asset.id, "medium");
    frame(image, fields);
    const form = new AssetForm(asset, this.view.locales, image);
    this.#form = form;
    form.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#write(form, () => this.#save(form));
    });
    form.describe.addEventListener("click", () => this.#write(form, () => this.#describe(form)));
    const mayWrite = this.view.may.has("write");
    if (!mayWrite) makeReadOnly(form.element);
    const remove = () => this.#remove(asset);
    const heading = h("h2", { class: "document-title" }, h("bdi", {}, asset.title || asset.id));
    return [
      h(
        "header",
        { class: "page-head" },
        heading,
        mayWrite && h("button", { type: "button", class: "button", onclick: remove }, words.remove),
      ),
      h("div", { class: "asset-page" }, h("div", {}, image, factsOf(asset)), form.element),
      addressesOf(this.view, asset),
    ];
  }

  /** @param {AssetForm} form @param {() => Promise<void>} write */
  async #write(form, write) {
    try {
      await lockWhile(form.element, write);
    } catch (error) {
      if (/** @type {any} */ (error).status === 412) this.#tell(form);
      else form.tell(problemView(error));
    }
  }

  /** @param {AssetForm} form */
  async #save(form) {
    const change = form.readChange();
    if (!Object.keys(change).length) {
      announce(words.content.document.unchanged);
      return;
    }
    const { version } = form.asset;
    await this.view.content.documents.update(ASSET_MODEL, this.id, change, { ifVersion: version });
    announce(words.content.document.saved);
    await this.load();
  }

  /** @param {AssetForm} form */
  async #describe(form) {
    if (form.isChanged()) throw new Error(words.media.saveFirst);
    await this.view.content.assets.describe(this.id);
    announce(words.media.described);
    await this.load();
  }

  /** @param {any} asset */
  async #remove({ id, title, version }) {
    const { removeTitle, removeText, removed } = words.media;
    const done = await askInDialog(removeTitle(title || id), [h("p", {}, removeText)], {
      action: words.remove,
      isDangerous: true,
      onAction: () => this.view.content.documents.remove(ASSET_MODEL, id, { ifVersion: version }),
    });
    if (!done) return;
    announce(removed);
    location.hash = this.view.linkTo("media");
  }
}

/** @param {any} asset */
function factsOf({ locales, createdAt, updatedAt }) {
  const { facts } = words.media;
  const fields = locales[SHARED] ?? {};
  const size = fields.width && fields.height ? `${formatCount(fields.width)} × ${formatCount(fields.height)}` : "";
  const rows = [
    [facts.type, fields.mediaType],
    [facts.pixels, size],
    [facts.bytes, typeof fields.size === "number" ? formatBytes(fields.size) : ""],
    [facts.changed, formatInstant(updatedAt ?? createdAt)],
  ];
  const shown = rows.filter(([, value]) => typeof value === "string" && value);
  return h(
    "dl",
    { class: "asset-facts" },
    ...shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** @param {SpaceView} view @param {any} asset */
function addressesOf(view, { id, locales }) {
  const { sizes, sizeColumns, addresses, addressesText, copyAddress, reference, referenceHint } = words.media;
  const files = listOf(locales[SHARED]?.files).filter((file) => Object.hasOwn(sizes, file?.name));
  const rows = files.map(({ name, width, height, size }) => [
    sizes[/** @type {keyof typeof sizes} */ (name)],
    `${width} × ${height}`,
    formatBytes(size),
    h(
      "div",
      { class: "row-actions" },
      copyButton(copyAddress, sizes[/** @type {keyof typeof sizes} */ (name)], () =>
        view.content.assets.addressOf(id, name),
      ),
    ),
  ]);
  const own = `asset:${id}`;
  const inContent = h("input", { value: own, readOnly: true, class: "code", spellcheck: false });
  const referenceRow = h(
    "div",
    { class: "new-text" },
    field(reference, inContent, referenceHint),
    copyButton(words.copy, reference, async () => own),
  );
  const columns = [sizeColumns.size, number(sizeColumns.pixels), number(sizeColumns.bytes), sizeColumns.address];
  return h(
    "section",
    {},
    h("h3", {}, addresses),
    referenceRow,
    rows.length > 0 && h("p", { class: "quiet-text" }, addressesText),
    rows.length > 0 && table(words.media.files, columns, rows),
    h("a", { href: view.linkTo("documents", ASSET_MODEL, id) }, words.media.versions),
  );
}

/** Give an image its own shape, as large as there is room for. @param {HTMLElement} image @param {any} fields */
function frame(image, { width, height }) {
  const isKnown = width > 0 && height > 0;
  const [across, down] = isKnown ? [Number(width), Number(height)] : [3, 2];
  image.style.aspectRatio = `${across} / ${down}`;
  image.style.width = `min(100%, calc(60vh * ${across / down}))`;
}

/** @param {number} bytes */
function formatBytes(bytes) {
  return `${formatCount(Math.max(1, Math.round(bytes / 1_000)))} kB`;
}
