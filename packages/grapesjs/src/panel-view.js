/** @typedef {import("./assistant.js").Assistant} Assistant */

export const PANEL_TAG = "fermata-panel";
const OPEN = "fermata:open";
const ICON =
  '<svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true" fill="none" stroke="currentColor" ' +
  'stroke-width="2" stroke-linecap="round"><path d="M4 15a8 8 0 0 1 16 0"/><circle cx="12" cy="14" r="1.5" ' +
  'fill="currentColor" stroke="none"/></svg>';

/** Shows the assistant's panel in the editor, or wherever the host wants it. */
export class PanelView {
  /**
   * @param {any} editor
   * @param {Assistant} assistant
   * @param {Record<string, any>} options `panel`, and in `panelOptions` what else is set on it
   */
  constructor(editor, assistant, options) {
    this.editor = editor;
    this.assistant = assistant;
    this.options = options;
    /** @type {HTMLElement | undefined} */
    this.element = undefined;
  }

  /** Add the button to the editor's own panels, which hosts with an interface of their own do not have. */
  addButton() {
    this.editor.Commands.add(OPEN, {
      run: () => this.#show(true),
      stop: () => this.#show(false),
    });
    this.editor.Panels.addButton("views", {
      id: OPEN,
      command: OPEN,
      togglable: true,
      label: ICON,
      attributes: {
        title: this.editor.t("fermata.open"),
        "aria-label": this.editor.t("fermata.open"),
        role: "button",
        tabindex: "0",
      },
    });
  }

  /**
   * Put the panel into an element of the host.
   * @param {HTMLElement} target
   * @returns {HTMLElement} the panel
   */
  mount(target) {
    const element = this.#createOnce();
    target.append(element);
    return element;
  }

  /** @param {boolean} isShown */
  #show(isShown) {
    const element = this.#createOnce();
    if (!element.isConnected && isShown) {
      this.editor.Panels.getPanel("views-container")?.set("appendContent", element).trigger("change:appendContent");
    }
    element.style.display = isShown ? "" : "none";
    return element;
  }

  #createOnce() {
    if (this.element) return this.element;
    const element = this.options.panel instanceof HTMLElement ? this.options.panel : this.#create();
    this.element = element;
    const { executor, scope } = this.assistant;
    Object.assign(element, { scope, executor, ...this.options.panelOptions });
    // the panel shows nothing that needs the client before it has one
    this.assistant.client().then(
      (client) => Object.assign(element, { client }),
      (error) => this.editor.log(`fermata: ${error.message}`, { level: "warning", ns: "fermata" }),
    );
    return element;
  }

  #create() {
    if (customElements.get(PANEL_TAG)) return document.createElement(PANEL_TAG);
    const words = document.createElement("p");
    words.textContent = this.editor.t("fermata.missingPanel");
    return words;
  }
}
