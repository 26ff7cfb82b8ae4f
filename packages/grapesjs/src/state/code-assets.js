/** Keep scripts and style sheets of the site, which GrapesJS has no place for. */

import { hashText } from "./hash.js";

/**
 * A script or style sheet of the site, which GrapesJS has no place for.
 * @typedef {object} CodeAsset
 * @property {"script" | "style"} type
 * @property {string} content
 * @property {Record<string, unknown>} runtime where and how it is loaded
 */

const PROJECT_MEMBER = "fermataCode";

/**
 * Scripts and style sheets of the site. They are part of the project's data, so that the host's own storage keeps them
 * (decision 0276). A style sheet takes effect on the canvas; a script runs only where the host asks for it.
 */
export class CodeAssets {
  /**
   * @param {any} editor
   * @param {{runScripts: boolean}} options
   */
  constructor(editor, { runScripts }) {
    this.editor = editor;
    this.runScripts = runScripts;
    /** @type {Map<string, CodeAsset>} */
    this.assets = new Map();
    editor.on("storage:start:store", (/** @type {any} */ data) => this.#addTo(data));
    editor.on("project:get", (/** @type {any} */ { project }) => this.#addTo(project));
    editor.on("project:load", (/** @type {any} */ { project }) => this.load(project?.[PROJECT_MEMBER] ?? {}));
    editor.on("canvas:frame:load:body", () => this.show());
  }

  /** @param {string} path */
  get(path) {
    return this.assets.get(path);
  }

  /** @returns {[string, CodeAsset][]} sorted by path */
  all() {
    return [...this.assets].sort(([one], [other]) => (one < other ? -1 : 1));
  }

  /** @returns {Map<string, string>} */
  hashes() {
    return new Map(this.all().map(([path, asset]) => [path, hashText(JSON.stringify(asset))]));
  }

  /**
   * @param {string} path
   * @param {CodeAsset | null} asset null removes it
   */
  set(path, asset) {
    if (asset) this.assets.set(path, asset);
    else this.assets.delete(path);
    this.show();
    this.editor.trigger("fermata:code", { path, asset });
  }

  /** @param {Record<string, CodeAsset>} assets */
  load(assets) {
    this.assets = new Map(Object.entries(assets));
    this.show();
  }

  /** Bring the canvas up to date. */
  show() {
    const page = this.editor.Canvas.getDocument?.();
    if (!page?.head) return;
    for (const old of page.head.querySelectorAll("[data-fermata-code]")) old.remove();
    for (const [path, asset] of this.all()) {
      if (asset.type === "script" && !this.runScripts) continue;
      const element = page.createElement(asset.type === "style" ? "style" : "script");
      element.setAttribute("data-fermata-code", path);
      element.textContent = asset.content;
      page.head.append(element);
    }
  }

  /** @param {any} project */
  #addTo(project) {
    if (project && this.assets.size) project[PROJECT_MEMBER] = Object.fromEntries(this.all());
  }
}
