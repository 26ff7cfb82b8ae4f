/** Show the panel of the agent in the editor, or wherever the host wants it. */

/** @typedef {import("./assistant.js").Assistant} Assistant */

export const PANEL_TAG = "fermata-panel";
const OPEN = "fermata:open";
const WIDTH = "--gjs-left-width";
/** The column of GrapesJS is too narrow to read in. */
const READABLE_WIDTH = "clamp(340px, 26%, 440px)";
const ICON =
  '<svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true" style="fill: currentColor">' +
  '<path d="M12 2l1.9 6.1L20 10l-6.1 1.9L12 18l-1.9-6.1L4 10l6.1-1.9zM19 15l.9 2.6 2.6.9-2.6.9L19 22l-.9-2.6-2.6-.9 ' +
  '2.6-.9z"/></svg>';

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
    const title = this.editor.t("fermata.open");
    const attributes = { title, "aria-label": title, role: "button", tabindex: "0", "data-fermata-open": "" };
    this.editor.Panels.addButton("views", { id: OPEN, command: OPEN, togglable: true, label: ICON, attributes });
    const button = this.editor.getContainer()?.querySelector("[data-fermata-open]");
    // the buttons of GrapesJS are no buttons: they do not answer to the keyboard
    button?.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      button.click();
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
    this.#widen(isShown);
    if (isShown) element.focus();
    return element;
  }

  /** @param {boolean} isWide */
  #widen(isWide) {
    const { style } = this.editor.getContainer();
    if (isWide) style.setProperty(WIDTH, READABLE_WIDTH);
    else style.removeProperty(WIDTH);
    this.editor.refresh();
  }

  #createOnce() {
    if (this.element) return this.element;
    const element = this.options.panel instanceof HTMLElement ? this.options.panel : this.#create();
    this.element = element;
    const tag = element.localName;
    // properties that are set before an element is defined would hide those of its class
    if (!tag.includes("-") || customElements.get(tag)) this.#connect(element);
    else customElements.whenDefined(tag).then(() => this.#connect(element));
    return element;
  }

  /** Create the panel. Until it is defined, it says in words that it is missing. */
  #create() {
    const element = document.createElement(PANEL_TAG);
    if (!customElements.get(PANEL_TAG)) element.textContent = this.editor.t("fermata.missingPanel");
    return element;
  }

  /** @param {HTMLElement} element */
  #connect(element) {
    const { turnExecutor, scope } = this.assistant;
    Object.assign(element, { scope, executor: turnExecutor, ...this.options.panelOptions });
    this.assistant.client().then(
      (client) => Object.assign(element, { client }),
      (error) => this.editor.log(`fermata: ${error.message}`, { level: "warning", ns: "fermata" }),
    );
  }
}
