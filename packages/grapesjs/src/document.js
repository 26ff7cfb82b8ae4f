/** What tools read and change: the pages, rules and code of an editor, and the ids of their nodes. */

import { StyleRules } from "./css/style-rules.js";
import { CodeAssets } from "./state/code-assets.js";
import { isTextNode, tagOf } from "./state/component-tree.js";
import { StateReader } from "./state/document-state.js";
import { NodeIds } from "./state/node-ids.js";
import { Typing } from "./state/typing.js";
import { ToolError } from "./tool-error.js";

/** @typedef {import("./state/component-tree.js").Component} Component */
/** @typedef {{type: "page" | "template" | "visualComponent", id: string}} DocumentRef */

const MAX_DESCRIBED_CHARS = 300;
/** Members of a page that GrapesJS stores and gives no meaning to. */
export const HOMEPAGE_SLUG = "index";

/** What tools read and change: the pages, rules and code of an editor, and the ids of their nodes. */
export class EditorDocument {
  /**
   * @param {any} editor
   * @param {{runScripts: boolean}} options
   */
  constructor(editor, options) {
    this.editor = editor;
    this.ids = new NodeIds(editor);
    this.typing = new Typing(editor);
    this.rules = new StyleRules(editor);
    this.code = new CodeAssets(editor, options);
    this.reader = new StateReader(editor, this);
  }

  /** The page on the canvas. */
  get currentPage() {
    return this.editor.Pages.getSelected() ?? this.editor.Pages.getAll()[0];
  }

  /** @returns {Component} the body of the page on the canvas */
  get body() {
    return this.currentPage.getMainComponent();
  }

  /** @param {any} page */
  slugOf(page) {
    return page.get("slug") || (page === this.editor.Pages.getAll()[0] ? HOMEPAGE_SLUG : page.getId());
  }

  /** @param {any} page */
  titleOf(page) {
    return page.getName() || this.slugOf(page);
  }

  /**
   * @param {any} page
   * @returns {DocumentRef}
   */
  refOf(page) {
    return { type: page.get("template") ? "template" : "page", id: page.getId() };
  }

  /**
   * Return the page on which a component is; undefined for one of a symbol's main component.
   * @param {Component} component
   */
  pageOf(component) {
    return this.editor.Pages.getAll().find((/** @type {any} */ page) => {
      const body = page.getMainComponent();
      for (let outer = component; outer; outer = outer.parent()) if (outer === body || outer === body.head) return true;
      return false;
    });
  }

  /**
   * Return a component's HTML with the node ids of all elements in it.
   * @param {Component} component
   * @param {{plain?: boolean}} [options] `plain` leaves the node ids out
   * @returns {string}
   */
  htmlOf(component, { plain = false } = {}) {
    const styled = this.#idsWithRules();
    return component.toHTML({
      attributes: (/** @type {Component} */ one, /** @type {Record<string, unknown>} */ attributes) => {
        if (isTextNode(one)) return attributes;
        const { id, ...rest } = attributes;
        const shown = id && (styled.has(id) || this.ids.ownIdAttribute(one) === id) ? { id, ...rest } : rest;
        return plain ? shown : { uid: this.ids.of(one), ...shown };
      },
    });
  }

  /** @returns {Set<unknown>} `id` attributes that a style rule names */
  #idsWithRules() {
    const names = this.rules.all().flatMap((rule) => [...rule.selectorsToString().matchAll(/#([\w-]+)/g)]);
    return new Set(names.map(([, name]) => name));
  }

  /**
   * Return a sentence on what a node is now.
   * @param {string} id
   */
  describe(id) {
    try {
      const component = this.ids.find(id);
      const typed = this.typing.textIn(component);
      if (typed !== undefined) return `${id} is being written by the user: ${typed.slice(0, MAX_DESCRIBED_CHARS)}`;
      return `The <${tagOf(component)}> ${id} is now ${this.htmlOf(component).slice(0, MAX_DESCRIBED_CHARS)}`;
    } catch (error) {
      if (error instanceof ToolError) return `${id} is gone.`;
      throw error;
    }
  }
}
