/** An image: what it shows, what it is called, and the addresses under which it is found. */

import { announce, askInDialog, field, h, number, problemView, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { assetImage } from "./asset-image.js";
import { changedLocales } from "./content-difference.js";
import { copyButton } from "./copy-button.js";
import { ASSET_MODEL } from "./media.js";
import { refreshRegularly } from "./refresh.js";

/** @import { SpaceView } from "./space-page.js" */

const SHARED = "data";
const MAX_TITLE = 500;

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

  load() {
    return showLoaded(
      this.element,
      () => this.#read(),
      (asset) => this.#render(asset),
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
    if (form.isChanged()) form.tellChangedMeanwhile(() => this.load());
    else await this.load();
  }

  /** @param {any} asset */
  #render(asset) {
    const form = new AssetForm(asset);
    this.#form = form;
    form.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#write(form, () => this.#save(form));
    });
    form.describe.addEventListener("click", () => this.#write(form, () => this.#describe(form)));
    const remove = () => this.#remove(asset);
    const heading = h("h2", { class: "document-title" }, h("bdi", {}, asset.title || asset.id));
    const fields = asset.locales[SHARED] ?? {};
    const image = assetImage(this.view, asset.id, "medium");
    image.style.aspectRatio = ratioOf(fields);
    return [
      h(
        "header",
        { class: "page-head" },
        heading,
        h("button", { type: "button", class: "button", onclick: remove }, words.remove),
      ),
      h("div", { class: "asset-page" }, h("div", {}, image, factsOf(asset)), form.element),
      addressesOf(this.view, asset),
    ];
  }

  /** @param {AssetForm} form @param {() => Promise<void>} write */
  async #write(form, write) {
    form.setBusy(true);
    try {
      await write();
    } catch (error) {
      if (/** @type {any} */ (error).status === 412) form.tellChangedMeanwhile(() => this.load());
      else form.tell(problemView(error));
    } finally {
      form.setBusy(false);
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

class AssetForm {
  #problem = h("div", { class: "form-problem-place" });
  #save = h("button", { type: "submit", class: "button primary" }, words.content.document.save);

  /** @param {any} asset */
  constructor(asset) {
    this.asset = asset;
    const { alt, altHint, filename, description, tags, tagsHint, describe, describeHint } = words.media;
    const fields = asset.locales[SHARED] ?? {};
    this.alt = h("textarea", { rows: 2, value: textOf(fields.alt) });
    this.filename = h("input", { value: textOf(fields.filename), maxLength: 255, autocomplete: "off" });
    this.description = h("textarea", { rows: 3, value: textOf(fields.description) });
    this.tags = h("textarea", { rows: 2, value: listOf(fields.tags).join("\n") });
    this.describe = h("button", { type: "button", class: "button", title: describeHint }, describe);
    this.element = h(
      "form",
      { class: "fields", noValidate: true },
      field(alt, this.alt, altHint),
      field(filename, this.filename),
      field(description, this.description),
      field(tags, this.tags, tagsHint),
      this.#problem,
      h("div", { class: "form-end" }, this.describe, this.#save),
    );
  }

  /** @returns {any} What was changed, as the service wants it. The title follows the alternative text. */
  readChange() {
    const before = this.asset.locales[SHARED] ?? {};
    const tags = this.tags.value
      .split("\n")
      .map((tag) => tag.trim())
      .filter(Boolean);
    const own = {
      alt: this.alt.value.trim() || undefined,
      filename: this.filename.value.trim() || undefined,
      description: this.description.value.trim() || undefined,
      tags: tags.length ? tags : undefined,
    };
    const known = { alt: before.alt, filename: before.filename, description: before.description, tags: before.tags };
    const locales = changedLocales({ [SHARED]: withoutEmpty(known) }, { [SHARED]: withoutEmpty(own) });
    if (!Object.keys(locales).length) return {};
    const isNamedAnew = "alt" in locales[SHARED] || "filename" in locales[SHARED];
    const title = [...(own.alt ?? own.filename ?? "")].slice(0, MAX_TITLE).join("");
    return isNamedAnew && title && title !== this.asset.title ? { title, locales } : { locales };
  }

  isChanged() {
    return Object.keys(this.readChange()).length > 0;
  }

  /** @param {boolean} isBusy */
  setBusy(isBusy) {
    this.#save.disabled = isBusy;
    this.describe.disabled = isBusy;
  }

  /** @param {HTMLElement} problem */
  tell(problem) {
    this.#problem.replaceChildren(problem);
    problem.scrollIntoView({ block: "nearest" });
  }

  /** @param {() => void} onLoad */
  tellChangedMeanwhile(onLoad) {
    if (this.#problem.querySelector(".meanwhile")) return;
    const { changedMeanwhile, loadNewest } = words.content.document;
    const load = h("button", { type: "button", class: "button", onclick: onLoad }, loadNewest);
    this.tell(h("div", { class: "problem meanwhile", role: "alert" }, h("p", {}, changedMeanwhile), load));
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

/** @param {any} fields */
function ratioOf({ width, height }) {
  return width > 0 && height > 0 ? `${Number(width)} / ${Number(height)}` : "3 / 2";
}

/** @param {number} bytes */
function formatBytes(bytes) {
  return `${formatCount(Math.max(1, Math.round(bytes / 1_000)))} kB`;
}

/** @param {any} value */
const textOf = (value) => (typeof value === "string" ? value : "");

/** @param {any} value @returns {any[]} */
const listOf = (value) => (Array.isArray(value) ? value : []);

/** @param {Record<string, any>} fields */
function withoutEmpty(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}
