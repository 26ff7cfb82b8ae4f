/** Where a prompt is written: text, images, the model, send and stop. */

/** @import { ViewContext } from "./turn-element.js" */
import { h, icon, iconButton, setText } from "./dom.js";
import { formatBytes } from "./format.js";

const MAX_IMAGES = 8;
const MAX_IMAGE_BYTES = 10_000_000; // docs/uploads.md
const IMAGE_TYPES = ["image/jpeg", "image/png", "image/gif", "image/webp"];

export class Composer {
  /** @type {{file: File, url: string}[]} */
  #images = [];
  #thumbnails = h("ul", { class: "thumbnails", hidden: true });
  #note = h("p", { class: "note bad", role: "alert", hidden: true });
  #isStopping = false;

  /**
   * @param {ViewContext} context
   * @param {{onModel: () => void, onSend: () => void}} actions
   */
  constructor(context, { onModel, onSend }) {
    const { words } = context;
    this.context = context;
    this.onSend = onSend;
    this.text = h("textarea", { rows: 1, placeholder: words.placeholder, "aria-label": words.placeholder });
    this.text.addEventListener("keydown", (event) => this.#onKey(event));
    this.text.addEventListener("input", () => this.#fit());
    this.text.addEventListener("paste", (event) => this.#onPaste(event));
    const chooser = h("input", { type: "file", accept: IMAGE_TYPES.join(), multiple: true, hidden: true });
    chooser.addEventListener("change", () => {
      this.addFiles([...(chooser.files ?? [])]);
      chooser.value = "";
    });
    this.modelLabel = h("span", { class: "model-label" });
    this.modelButton = h(
      "button",
      { type: "button", class: "model", "aria-haspopup": "dialog", onclick: onModel },
      this.modelLabel,
      icon("chevron"),
    );
    this.attachButton = iconButton("attach", words.attach, () => chooser.click());
    this.sendButton = iconButton("send", words.send, () => this.#act(), { class: "icon-button send" });
    const row = h(
      "div",
      { class: "composer-row" },
      this.attachButton,
      this.modelButton,
      h("span", { class: "gap" }),
      this.sendButton,
    );
    const field = h("div", { class: "field" }, this.#thumbnails, this.text, row, chooser);
    this.element = h(
      "form",
      { class: "composer", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
      this.#note,
      field,
    );
  }

  update() {
    const { state } = this.context.session;
    const { words } = this.context;
    const isBusy = Boolean(state.running) || state.isStarting;
    if (!isBusy) this.#isStopping = false;
    const isLocked = state.lock !== null;
    setText(this.modelLabel, state.modelInfo?.label ?? state.model?.modelId ?? words.chooseModel);
    this.text.disabled = isLocked && state.lock !== "signedOut";
    this.attachButton.disabled = isLocked;
    this.modelButton.disabled = isLocked && state.lock !== "chooseModel";
    const label = isBusy ? (this.#isStopping ? words.stopping : words.stop) : words.send;
    if (this.sendButton.getAttribute("aria-label") !== label) {
      this.sendButton.setAttribute("aria-label", label);
      this.sendButton.title = label;
      this.sendButton.replaceChildren(icon(isBusy ? "stop" : "send"));
    }
    this.#enableSending();
  }

  /** @param {File[]} files */
  addFiles(files) {
    const { words, language } = this.context;
    /** @type {string[]} */
    const problems = [];
    for (const file of files) {
      const [size, most] = [file.size, MAX_IMAGE_BYTES].map((bytes) => formatBytes(bytes, language));
      if (!IMAGE_TYPES.includes(file.type)) problems.push(words.noImage(file.name));
      else if (file.size > MAX_IMAGE_BYTES) problems.push(words.imageTooLarge(file.name, size, most));
      else if (this.#images.length >= MAX_IMAGES) problems.push(words.tooManyImages(MAX_IMAGES));
      else this.#images.push({ file, url: URL.createObjectURL(file) });
    }
    this.#tell([...new Set(problems)].join(" "));
    this.#showImages();
  }

  focus() {
    this.text.focus();
  }

  async #act() {
    const { session } = this.context;
    if (session.state.running || session.state.isStarting) {
      this.#isStopping = true;
      this.update();
      await session.stop();
      return;
    }
    await this.#send();
  }

  async #send() {
    const { session, words } = this.context;
    const prompt = this.text.value.trim();
    if (!prompt || this.sendButton.disabled || session.state.running || session.state.isStarting) return;
    const { modelInfo } = session.state;
    if (this.#images.length && modelInfo && !modelInfo.capabilities.visionInput) {
      this.#tell(words.modelReadsNoImages(modelInfo.label));
      return;
    }
    const images = this.#images;
    this.#images = [];
    this.text.value = "";
    this.#tell("");
    this.#showImages();
    this.#fit();
    this.onSend();
    const isStarted = await session.send(
      prompt,
      images.map(({ file }) => file),
    );
    for (const { url } of isStarted ? images : []) URL.revokeObjectURL(url);
    if (!isStarted) this.#giveBack(prompt, images);
  }

  /**
   * Put what could not be sent back where it was written, unless something else was written meanwhile.
   *
   * @param {string} prompt
   * @param {{file: File, url: string}[]} images
   */
  #giveBack(prompt, images) {
    if (!this.text.value) this.text.value = prompt;
    this.#images = [...images, ...this.#images];
    this.#showImages();
    this.#fit();
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (!this.context.session.state.running) this.#send();
    }
  }

  /** @param {ClipboardEvent} event */
  #onPaste(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    this.addFiles(files);
  }

  #showImages() {
    const { words } = this.context;
    this.#thumbnails.hidden = !this.#images.length;
    this.#thumbnails.replaceChildren(
      ...this.#images.map((image) => {
        const remove = iconButton("close", words.removeImage(image.file.name), () => {
          this.#images = this.#images.filter((each) => each !== image);
          URL.revokeObjectURL(image.url);
          this.#tell("");
          this.#showImages();
        });
        return h("li", {}, h("img", { src: image.url, alt: image.file.name }), remove);
      }),
    );
    this.#enableSending();
  }

  /** @param {string} words */
  #tell(words) {
    this.#note.hidden = !words;
    setText(this.#note, words);
  }

  #enableSending() {
    const { state } = this.context.session;
    const isBusy = Boolean(state.running) || state.isStarting;
    this.sendButton.disabled = isBusy
      ? this.#isStopping || !state.running
      : state.lock !== null || !this.text.value.trim();
  }

  /** Let the field grow with its text. */
  #fit() {
    this.#enableSending();
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight, 200)}px`;
  }
}
