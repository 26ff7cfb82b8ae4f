/** Links to entries that others point to. They say the titles of these once they are known: one request for each model. */

import { h } from "../dom.js";

/** @import { SpaceView } from "./space-page.js" */

/** The service tells so many at once. Of more, the ids are shown. */
const MOST = 100;

export class RelationTitles {
  /** The links to each entry, by model and id. @type {Map<string, Map<string, HTMLElement[]>>} */
  #links = new Map();

  /** @param {SpaceView} view */
  constructor(view) {
    this.view = view;
  }

  /**
   * Make a link to an entry.
   *
   * @param {string} name `model/id`
   * @returns {HTMLElement}
   */
  link(name) {
    const slash = name.indexOf("/");
    const [model, id] = [name.slice(0, slash), name.slice(slash + 1)];
    const text = h("bdi", {}, id);
    if (!model || !id) return text;
    const ofModel = this.#links.get(model) ?? new Map();
    this.#links.set(model, ofModel.set(id, [...(ofModel.get(id) ?? []), text]));
    return h("a", { href: this.view.linkTo("documents", model, id) }, text);
  }

  /** Ask for the titles of what was linked since the last time. What cannot be read keeps its id. */
  async load() {
    const asked = this.#links;
    this.#links = new Map();
    await Promise.all([...asked].map(([model, links]) => this.#loadOf(model, links)));
  }

  /** @param {string} model @param {Map<string, HTMLElement[]>} links */
  async #loadOf(model, links) {
    const { content, context } = this.view;
    const ids = [...links.keys()].filter((id) => /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/.test(id)).slice(0, MOST);
    if (!ids.length) return;
    const read = content.documents.list(model, { ids: ids.join(",") }, { signal: context.signal });
    const found = await read.catch(() => ({ documents: [] })); // the ids are shown already
    for (const { id, title } of found.documents)
      for (const text of links.get(id) ?? []) if (title) text.textContent = title;
  }
}
