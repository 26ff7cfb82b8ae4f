/** What a person decides about a call: approve it, deny it with a reason, or approve it with other arguments. */

/** @import { ApprovalView } from "./approval-view.js" */
/** @import { ApprovalWords } from "./approval-words.js" */
import { h, isInputMethod, setText } from "../view/dom.js";
import { ArgumentError, ArgumentFields, argumentList } from "./argument-fields.js";

/** @typedef {{approved: boolean, reason?: string, input?: any}} Decision */

const MAX_REASON = 1_000;

export class DecisionForm {
  #arguments = h("div");
  #reason = h("textarea", { rows: 2, maxLength: MAX_REASON });
  #reasonField;
  #problem = h("p", { class: "approval-problem", role: "alert", hidden: true });
  #buttons = h("div", { class: "approval-buttons" });
  /** @type {ArgumentFields | null} */
  #fields = null;
  /** @type {"ask" | "deny" | "change"} */
  #mode = "ask";
  #isSending = false;
  #mayDecide = false;
  /** @type {ApprovalView} */
  #approval;

  /**
   * @param {ApprovalView} approval
   * @param {object} parts
   * @param {ApprovalWords} parts.words
   * @param {(decision: Decision) => Promise<void>} parts.decide
   * @param {() => Promise<Record<string, any> | null>} parts.schema Of the arguments; null where it is not known.
   */
  constructor(approval, { words, decide, schema }) {
    this.#approval = approval;
    this.words = words;
    this.decide = decide;
    this.schema = schema;
    this.#reasonField = h("label", { class: "approval-field", hidden: true }, h("span", {}, words.denyReason));
    this.#reasonField.append(this.#reason);
    this.element = h(
      "div",
      { class: "approval-form", onkeydown: (/** @type {KeyboardEvent} */ event) => this.#onKey(event) },
      this.#arguments,
      this.#reasonField,
      this.#problem,
      this.#buttons,
    );
    this.#show("ask");
  }

  /** Show the buttons, or take them away. @param {boolean} mayDecide */
  allow(mayDecide) {
    if (mayDecide === this.#mayDecide) return;
    this.#mayDecide = mayDecide;
    this.#show("ask");
  }

  /**
   * Show what is known now. What a person has begun to write stays, unless the call has other arguments.
   *
   * @param {ApprovalView} approval
   */
  showInput(approval) {
    const isOther = approval.inputHash !== this.#approval.inputHash;
    this.#approval = approval;
    if (isOther) this.#show("ask");
    else if (this.#mode !== "change") this.#showArguments();
  }

  /** @param {string} text Empty for none. */
  tell(text) {
    this.#problem.hidden = !text;
    setText(this.#problem, text);
  }

  /** @param {"ask" | "deny" | "change"} mode */
  #show(mode) {
    this.#mode = mode;
    this.#fields = null;
    this.#reasonField.hidden = mode !== "deny";
    this.tell("");
    this.#showArguments();
    this.#buttons.replaceChildren(...this.#buttonsOf(mode));
    this.#buttons.hidden = !this.#mayDecide;
  }

  #showArguments() {
    this.#arguments.replaceChildren(argumentList(this.#approval.input, this.words));
  }

  /** @param {"ask" | "deny" | "change"} mode */
  #buttonsOf(mode) {
    const { words } = this;
    if (mode === "ask") {
      const approve = this.#button(words.approve, () => this.#send({ approved: true }), "primary");
      return [
        approve,
        this.#button(words.deny, () => this.#askForReason()),
        this.#button(words.change, () => this.#askForInput()),
      ];
    }
    const back = this.#button(words.back, () => this.#goBack());
    if (mode === "deny") return [this.#button(words.denyConfirm, () => this.#sendDenial(), "danger"), back];
    return [this.#button(words.approveChanged, () => this.#sendChanged(), "primary"), back];
  }

  /** @param {string} label @param {() => unknown} onclick @param {string} [kind] */
  #button(label, onclick, kind = "") {
    const press = () => !this.#isSending && onclick();
    return h("button", { type: "button", class: `approval-button ${kind}`.trim(), onclick: press }, label);
  }

  #askForReason() {
    this.#show("deny");
    this.#reason.focus();
  }

  async #askForInput() {
    const schema = await this.schema();
    if (!this.#mayDecide || this.#mode !== "ask") return;
    this.#show("change");
    this.#fields = new ArgumentFields(this.#approval.input, schema, this.words);
    this.#arguments.replaceChildren(this.#fields.element);
    const first = this.#fields.element.querySelector("textarea, select, input");
    /** @type {HTMLElement | null} */ (first)?.focus();
  }

  #goBack() {
    const place = { deny: 1, change: 2, ask: 0 }[this.#mode];
    this.#show("ask");
    /** @type {HTMLElement | undefined} */ (this.#buttons.children[place])?.focus();
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.key !== "Escape" || isInputMethod(event) || this.#mode === "ask") return;
    event.stopPropagation(); // around it, the key stops the turn
    event.preventDefault();
    this.#goBack();
  }

  #sendDenial() {
    const reason = this.#reason.value.trim();
    return this.#send(reason ? { approved: false, reason } : { approved: false });
  }

  #sendChanged() {
    try {
      return this.#send({ approved: true, input: this.#fields?.read() });
    } catch (error) {
      if (!(error instanceof ArgumentError)) throw error;
      return this.tell(error.message);
    }
  }

  /** @param {Decision} decision */
  async #send(decision) {
    this.#isSending = true;
    this.tell("");
    this.element.setAttribute("aria-busy", "true");
    await this.decide(decision);
    this.element.removeAttribute("aria-busy");
    this.#isSending = false;
  }
}
