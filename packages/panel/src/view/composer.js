/** Where a prompt is written: text, images, the model, send and stop. */

/** @import { ViewContext } from "./turn-element.js" */
import { h, icon, iconButton, isInputMethod, setText, showBlob } from "./dom.js";
import { formatBytes } from "./format.js";

const MAX_IMAGES = 8;
const MAX_IMAGE_BYTES = 10_000_000; // docs/uploads.md
const IMAGE_TYPES = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/** @typedef {{file: File, element: HTMLLIElement}} AttachedImage */

export class Composer {
  /** @type {AttachedImage[]} */
  #images = [];
  #thumbnails = h("ul", { class: "thumbnails", hidden: true });
  #note = h("p", { class: "note bad", role: "alert", hidden: true });
  #isStopping = false;
  /** A prompt waits until the panel has loaded. */
  #isWaiting = false;

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
    setText(
      this.modelLabel,
      state.modelInfo?.label ??
        state.model?.modelId ??
        (state.lock === "chooseModel" ? words.chooseModel : words.model),
    );
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
      else this.#images.push(this.#attach(file));
    }
    this.#tell([...new Set(problems)].join(" "));
    this.#showImages();
  }

  focus() {
    this.text.focus();
  }

  /** What was written and not sent. */
  get draft() {
    return { text: this.text.value, files: this.#images.map(({ file }) => file) };
  }
  set draft({ text, files }) {
    this.text.value = text;
    this.addFiles(files);
    this.#fit();
  }

  async #act() {
    const { session } = this.context;
    if (this.#isStopping) return;
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
    if (!prompt || this.#isWaiting) return;
    this.#isWaiting = true;
    await session.loaded();
    this.#isWaiting = false;
    const { running, isStarting, lock } = session.state;
    if (running || isStarting || lock || this.text.value.trim() !== prompt) return;
    const { modelInfo } = session.state;
    if (this.#images.length && modelInfo && !modelInfo.capabilities?.visionInput) {
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
    if (!isStarted) this.#giveBack(prompt, images);
  }

  /**
   * Put what could not be sent back where it was written, before what was written meanwhile.
   *
   * @param {string} prompt
   * @param {AttachedImage[]} images
   */
  #giveBack(prompt, images) {
    this.text.value = [prompt, this.text.value].filter(Boolean).join("\n\n");
    this.#images = [...images, ...this.#images];
    this.#showImages();
    this.#fit();
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.key === "Enter" && !event.shiftKey && !isInputMethod(event)) {
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

  /** @param {File} file @returns {AttachedImage} */
  #attach(file) {
    const { words } = this.context;
    const picture = h("img", { alt: file.name });
    const detach = (/** @type {string} */ note) => {
      this.#images = this.#images.filter((each) => each.element !== element);
      this.#tell(note);
      this.#showImages();
    };
    const remove = iconButton("close", words.removeImage(file.name), () => {
      detach("");
      this.focus();
    });
    const element = h("li", {}, picture, remove);
    showBlob(picture, file).catch(() => detach(words.unreadableImage(file.name))); // whatever its type says
    return { file, element };
  }

  #showImages() {
    this.#thumbnails.hidden = !this.#images.length;
    this.#thumbnails.replaceChildren(...this.#images.map(({ element }) => element));
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
    const isIdle = isBusy ? this.#isStopping : state.lock !== null || !this.text.value.trim();
    this.sendButton.setAttribute("aria-disabled", String(isIdle)); // `disabled` would take the focus away
  }

  /** Let the field grow with its text. */
  #fit() {
    this.#enableSending();
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight, 200)}px`;
  }
}
