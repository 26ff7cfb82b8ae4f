/** Say what the document is at one moment: a hash of all content, and one of each part. */

import { childrenOf, classesOf, isTextNode } from "./component-tree.js";
import { hashText } from "./hash.js";
import { attributeOf } from "./operations.js";

/** @typedef {import("./component-tree.js").Component} Component */
/**
 * Hashes of one element.
 * @typedef {object} NodeState
 * @property {string} own tag, attributes, classes, name
 * @property {string} text directly in it
 * @property {string} children their ids, in order
 * @property {string} deep everything in it
 */

/** What the document is at one moment: a hash of all content, and of each part for telling what changed. */
export class DocumentState {
  /**
   * @param {string} revision
   * @param {Map<string, NodeState>} nodes by id
   * @param {Map<string, import("../css/style-rules.js").StoredRule>} rules by key
   * @param {Map<string, string>} pages hash by id
   * @param {Map<string, string>} code hash by path
   */
  constructor(revision, nodes, rules, pages, code) {
    this.revision = revision;
    this.nodes = nodes;
    this.rules = rules;
    this.pages = pages;
    this.code = code;
  }

  /** @param {string} key */
  ruleText(key) {
    return this.rules.get(key)?.text ?? "";
  }
}

/** Reads the state of an editor's document. */
export class StateReader {
  /**
   * @param {any} editor
   * @param {{ids: import("./node-ids.js").NodeIds, typing: import("./typing.js").Typing,
   *   rules: import("../css/style-rules.js").StyleRules, code: import("./code-assets.js").CodeAssets}} parts
   */
  constructor(editor, parts) {
    this.editor = editor;
    this.parts = parts;
  }

  /** @returns {DocumentState} */
  read() {
    /** @type {Map<string, NodeState>} */
    const nodes = new Map();
    const rules = this.parts.rules.stored();
    const code = this.parts.code.hashes();
    const pages = new Map();
    const roots = this.parts.ids.roots().map((root) => this.#readNode(root, nodes).deep);
    for (const page of this.editor.Pages.getAll()) {
      const members = ["id", "name", "slug", "template"].map((name) => page.get(name) || null);
      pages.set(page.getId(), hashText(JSON.stringify(members)));
    }
    const styles = [...rules].map(([key, { text }]) => `${key}${text}`);
    const revision = hashText(JSON.stringify([[...pages], roots, styles, [...code]]));
    return new DocumentState(revision, nodes, rules, pages, code);
  }

  /**
   * @param {Component} component
   * @param {Map<string, NodeState>} nodes
   * @returns {NodeState}
   */
  #readNode(component, nodes) {
    const id = this.#uniqueId(component, nodes);
    /** @type {NodeState} */
    const state = { own: "", text: "", children: "", deep: "" };
    nodes.set(id, state);
    let text = component.attributes.content || "";
    let children = "";
    let deep = "";
    for (const child of childrenOf(component)) {
      if (isTextNode(child)) {
        text += `${child.attributes.type[0]}${child.attributes.content}\u0001`;
        deep += `\u0002${child.attributes.content}`;
        continue;
      }
      deep += `\u0003${this.#readNode(child, nodes).deep}`;
      children += `${child.attributes.fermataId} `;
    }
    const typed = this.parts.typing.textIn(component);
    state.own = this.#ownText(component);
    state.text = typed === undefined ? text : `${text}\u0004${typed}`;
    state.children = children;
    state.deep = hashText(`${state.own}\u0005${state.text}\u0005${deep}`);
    return state;
  }

  /**
   * Return a component's id. Of two with the same one, the second gets another: it is a copy.
   * @param {Component} component
   * @param {Map<string, NodeState>} nodes
   */
  #uniqueId(component, nodes) {
    const id = this.parts.ids.of(component);
    if (!nodes.has(id)) return id;
    component.unset("fermataId", { silent: true });
    return this.parts.ids.of(component);
  }

  /** @param {Component} component */
  #ownText(component) {
    const { tagName, attributes = {}, style, type } = component.attributes;
    let text = `${tagName}\u0001${classesOf(component).join(" ")}\u0001${component.attributes["custom-name"] ?? ""}`;
    const names = Object.keys(attributes);
    const members = type === "video" ? ["src", "loop", "autoplay", "controls", "muted"] : ["src"];
    for (const name of new Set([...names, ...members].sort())) {
      if (name === "id" || name === "class") continue;
      const value = attributeOf(component, name);
      if (value !== null) text += `\u0001${name}=${value}`;
    }
    const inline = style && typeof style === "object" && Object.keys(style).length ? JSON.stringify(style) : "";
    return `${text}\u0001${this.parts.ids.ownIdAttribute(component)}\u0001${inline}`;
  }
}
