/** The documents of a model. What has changed since it was shown is marked for a moment. */

import { emptyView, field, h, number, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { makeDocumentPages } from "./list-pages.js";
import { NEW_DOCUMENT } from "./new-document.js";
import { refreshRegularly } from "./refresh.js";

/** @import { SpaceView } from "./space-page.js" */

const STATUSES = ["draft", "in_review", "published", "rejected", "archived"];

/** @param {HTMLElement} target @param {SpaceView} view @param {string | undefined} model */
export function showDocuments(target, view, model) {
  return showLoaded(
    target,
    () => view.content.models.list({ signal: view.context.signal }),
    (models) => {
      const own = models.filter(({ kind }) => kind !== "section");
      const chosen = own.find(({ id }) => id === model) ?? own.find(({ id }) => id === "page") ?? own[0];
      return documentsView(view, own, chosen);
    },
  );
}

/** @param {SpaceView} view @param {any[]} models @param {any} model */
function documentsView(view, models, model) {
  const list = new DocumentList(view, model);
  const toModel = (/** @type {Event} */ event) => {
    location.hash = view.linkTo("documents", /** @type {HTMLSelectElement} */ (event.target).value);
  };
  const choice = h("select", { onchange: toModel }, ...models.map(modelOption));
  choice.value = model.id;
  const status = h(
    "select",
    { onchange: () => list.filter(status.value) },
    h("option", { value: "" }, words.content.anyStatus),
  );
  status.append(...STATUSES.map((name) => h("option", { value: name }, words.content.statuses[name])));
  const address = view.linkTo("documents", model.id, NEW_DOCUMENT);
  const create =
    view.may.has("write") && h("a", { class: "button primary", href: address }, words.content.documents.create);
  const head = [field(words.content.model, choice), field(words.content.status, status), create];
  list.load();
  refreshRegularly(view.context, () => list.load({ isRefresh: true }));
  return [h("div", { class: "content-tools" }, ...head), list.element];
}

/** @param {any} model */
function modelOption({ id, title, documents }) {
  return h("option", { value: id }, `${title || id} (${formatCount(documents)})`);
}

class DocumentList {
  #status = "";
  #pages;
  /** @type {Map<string, number> | undefined} Which version of a document was shown. */
  #shown;

  /** @param {SpaceView} view @param {any} model */
  constructor(view, model) {
    this.view = view;
    this.model = model;
    this.element = h("div");
    this.#pages = makeDocumentPages(view, model.id, () => (this.#status ? { status: this.#status } : {}));
  }

  /** @param {string} status */
  filter(status) {
    this.#status = status;
    this.#pages.reset();
    this.#shown = undefined;
    this.load();
  }

  /** @param {{isRefresh?: boolean}} [options] */
  load(options) {
    return showLoaded(
      this.element,
      () => this.#pages.read(),
      (page) => this.#show(page),
      options,
    );
  }

  /** @param {import("./list-pages.js").DocumentPage} page */
  #show(page) {
    const { documents, total } = page;
    const { none, noneText, noneWithStatus, columns, count } = words.content.documents;
    if (!documents.length) {
      this.#shown = new Map();
      return this.#status ? h("p", { class: "quiet-text" }, noneWithStatus) : emptyView(none, noneText);
    }
    const heads = [columns.title, columns.slug, columns.status, columns.languages, number(columns.changed)];
    const caption = this.#status ? this.model.title || this.model.id : count(total, formatCount(total));
    const shown = table(
      caption,
      heads,
      documents.map((document) => this.#cells(document)),
    );
    this.#markChanged(shown, documents);
    const turn = () => {
      this.#shown = undefined; // another page is no change
      return this.load();
    };
    return [shown, this.#pages.buttons(page, turn, this.#status ? undefined : total)];
  }

  /** @param {any} document */
  #cells({ model, id, title, slug, status, locales, updatedAt }) {
    const languages = locales.filter((/** @type {string} */ locale) => locale !== "data");
    return [
      h("a", { href: this.view.linkTo("documents", model, id) }, h("bdi", {}, title || slug || id)),
      slug,
      statusTag(status),
      h(
        "div",
        { class: "tags" },
        ...languages.map((/** @type {string} */ locale) => h("span", { class: "tag" }, locale)),
      ),
      formatInstant(updatedAt),
    ];
  }

  /** @param {HTMLElement} shown @param {any[]} documents */
  #markChanged(shown, documents) {
    const before = this.#shown;
    this.#shown = new Map(documents.map(({ id, version }) => [id, version]));
    if (!before) return;
    const rows = shown.querySelectorAll("tbody tr");
    for (const [index, { id, version }] of documents.entries())
      rows[index]?.classList.toggle("changed", before.get(id) !== version);
  }
}

/** @param {string} status */
export function statusTag(status) {
  const kind = /** @type {Record<string, string>} */ ({
    published: "tag good",
    in_review: "tag live",
    rejected: "tag bad",
  });
  return h("span", { class: kind[status] ?? "tag" }, words.content.statuses[status] ?? status);
}
