/** Give nodes ids that stay the same when the project is loaded again. */

import { refuse } from "../tool-error.js";
import { ancestorsOf, childrenOf, isTextNode, walk } from "./component-tree.js";

/** @typedef {import("./component-tree.js").Component} Component */

const ID_MEMBER = "fermataId";
const OWN_ID_MEMBER = "fermataOwnId";
const SILENT = { silent: true };
/** The event by which whoever saves the project learns that elements have got ids, which turns will name. */
export const IDS_EVENT = "fermata:ids";

/**
 * Ids of elements that stay: they are kept in the project's data, and not in the HTML (decision 0275).
 *
 * GrapesJS gives components new ids with each load, and adds an `id` attribute to what is selected.
 */
export class NodeIds {
  #isAnnounced = false;

  /** @param {any} editor */
  constructor(editor) {
    this.editor = editor;
    editor.on("component:clone", (/** @type {Component} */ copy) => this.#forget(copy));
    editor.on("component:create", (/** @type {Component} */ component) => this.#noteOwnId(component));
  }

  /**
   * Return a component's id; it gets one if it has none.
   * @param {Component} component
   * @returns {string}
   */
  of(component) {
    const known = component.attributes[ID_MEMBER];
    if (known) return known;
    const id = `n${Math.random().toString(36).slice(2, 9)}`;
    component.set(ID_MEMBER, id, SILENT);
    this.#noteOwnId(component, true);
    this.#announce();
    return id;
  }

  /** Say once for all ids of a moment that there are new ones: without them a reloaded page has other elements. */
  #announce() {
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    queueMicrotask(() => {
      this.#isAnnounced = false;
      this.editor.trigger(IDS_EVENT);
    });
  }

  /**
   * Return the `id` attribute that the page's author gave an element; empty if GrapesJS has added it.
   * @param {Component} component
   * @returns {string}
   */
  ownIdAttribute(component) {
    const id = component.attributes.attributes?.id;
    if (!id) return "";
    if (component.attributes[OWN_ID_MEMBER] === id) return id;
    return component.attributes[ID_MEMBER] && id === component.ccid ? "" : id;
  }

  /**
   * Note that an element's `id` attribute is content of the page.
   * @param {Component} component
   * @param {string} id empty for none
   */
  setOwnId(component, id) {
    component.set(OWN_ID_MEMBER, id, SILENT);
  }

  /**
   * Find an element of any page, or refuse.
   * @param {string} id
   * @returns {Component}
   */
  find(id) {
    for (const root of this.roots()) {
      const found = this.#findWithin(root, id);
      if (found) return found;
    }
    return refuse(`There is no node ${id} in this document (any more). Please read the document again.`);
  }

  /**
   * Free the `id` attributes in a definition that only removed components have: after an undo or redo GrapesJS still
   * counts them as taken, and would rename the new ones.
   * @param {any} json
   */
  release(json) {
    for (const definition of [json].flat()) {
      if (definition?.attributes?.id) this.releaseId(definition.attributes.id);
      this.release(definition?.components ?? []);
    }
  }

  /**
   * Free an `id` attribute, unless another element that is shown has it.
   * @param {string} id
   * @param {Component} [owner] the element that is to have it
   */
  releaseId(id, owner) {
    const byId = this.editor.Components.allById();
    const holder = byId[id];
    if (!holder) return;
    const isShown = this.roots().includes([holder, ...ancestorsOf(holder)].at(-1)) && holder.getId() === id;
    if (holder === owner || !isShown) delete byId[id];
  }

  /**
   * Set the id that GrapesJS uses for an element without an `id` attribute.
   * @param {Component} component
   * @param {string} id
   */
  setInternalId(component, id) {
    const byId = this.editor.Components.allById();
    if (byId[component.ccid] === component) delete byId[component.ccid];
    this.releaseId(id, component);
    byId[id] = component;
    component.ccid = id;
  }

  /**
   * Give elements the `id` attributes back that GrapesJS has numbered while it undid something.
   * @param {(id: string) => boolean} hasRule whether a style rule names an id
   */
  restoreNumbered(hasRule) {
    /** @type {Map<string, Component>} */
    const shown = new Map();
    for (const root of this.roots()) walk(root, (one) => shown.set(one.attributes.attributes?.id, one));
    // one that is restored may free the id of another
    for (let isChanged = true; isChanged; ) {
      isChanged = false;
      for (const [id, component] of [...shown]) {
        const base = /^(.+)-\d+$/.exec(id ?? "")?.[1];
        if (!base || shown.has(base)) continue;
        if (component.attributes[OWN_ID_MEMBER] !== base && !(hasRule(base) && !hasRule(id))) continue;
        this.releaseId(base, component);
        component.setId(base);
        shown.delete(id);
        shown.set(base, component);
        isChanged = true;
      }
    }
  }

  /** @returns {Component[]} the bodies and heads of all pages, then the main components of symbols */
  roots() {
    const bodies = this.editor.Pages.getAll().map((/** @type {any} */ page) => page.getMainComponent());
    const heads = bodies.map((/** @type {any} */ body) => body?.head).filter(Boolean);
    const symbols = this.editor.Components.getSymbols?.() ?? [];
    return [...bodies.filter(Boolean), ...heads, ...symbols];
  }

  /**
   * @param {Component} component
   * @param {string} id
   * @returns {Component | undefined}
   */
  #findWithin(component, id) {
    if (component.attributes[ID_MEMBER] === id) return component;
    for (const child of childrenOf(component)) {
      const found = isTextNode(child) ? undefined : this.#findWithin(child, id);
      if (found) return found;
    }
    return undefined;
  }

  /** @param {Component} copy */
  #forget(copy) {
    walk(copy, (component) => {
      component.unset(ID_MEMBER, SILENT);
      component.unset(OWN_ID_MEMBER, SILENT);
    });
  }

  /**
   * Note the `id` attribute with which an element came, so that one which GrapesJS adds later is told apart.
   * @param {Component} component
   * @param {boolean} [isFirst] it has just got its node id
   */
  #noteOwnId(component, isFirst = !component.attributes[ID_MEMBER]) {
    const id = component.attributes.attributes?.id;
    if (isFirst && id) component.set(OWN_ID_MEMBER, id, SILENT);
  }
}
