/** A call that waits for a decision, as a card: what is asked, why, until when, and what the person may decide. */

/** @import { ApprovalView } from "./approval-view.js" */
/** @import { ApprovalWords } from "./approval-words.js" */
/** @import { Decision } from "./decision-form.js" */
import { h, setText } from "../view/dom.js";
import { formatTime } from "../view/format.js";
import { DecisionForm } from "./decision-form.js";

/**
 * Where a card reads and decides.
 *
 * @typedef {object} ApprovalActions
 * @property {(id: string) => Promise<ApprovalView>} read Rejects with status 403 for whoever may not decide.
 * @property {(id: string, decision: Decision & {inputHash: string}) => Promise<ApprovalView>} decide
 * @property {(toolName: string) => Promise<Record<string, any> | null>} schema
 * @property {(error: any) => void} note Is told what needs nobody's attention.
 */

/** @typedef {{words: ApprovalWords, language: string, actions: ApprovalActions}} CardContext */

export class ApprovalCard {
  #title = h("strong", {});
  #deadline = h("span", { class: "approval-quiet" });
  #facts = h("div");
  #hint = h("p", { class: "approval-quiet", hidden: true });
  #outcome = h("p", { class: "approval-outcome", role: "status", tabIndex: -1 });
  #form;
  /** What was shown before: a turn tells the same again with each of its events. @type {WeakSet<ApprovalView>} */
  #seen = new WeakSet();
  /** @type {ApprovalView} */
  #approval;

  /**
   * @param {CardContext} context
   * @param {ApprovalView} approval
   * @param {{title: string, mayDecide?: boolean}} about `mayDecide` where it is known.
   */
  constructor(context, approval, { title, mayDecide }) {
    this.context = context;
    this.#approval = approval;
    this.#seen.add(approval);
    const { words } = context;
    this.#form = new DecisionForm(approval, {
      words,
      decide: (decision) => this.#decide(decision),
      schema: () => context.actions.schema(approval.toolName),
    });
    const head = h("div", { class: "approval-head" }, this.#title, this.#deadline);
    const parts = [head, this.#facts, this.#form.element, this.#hint, this.#outcome];
    this.element = h("div", { class: "approval", role: "group", "aria-label": words.label(title) }, ...parts);
    this.#facts.append(...factsOf(approval, title, words));
    this.#show();
    if (mayDecide) this.#allow();
    else if (approval.state === "waiting") this.#lookUp();
  }

  get state() {
    return this.#approval.state;
  }

  /**
   * Show what is known now. A decision that is known stays: an older answer may arrive later.
   *
   * @param {ApprovalView} approval
   */
  update(approval) {
    if (this.#seen.has(approval) || (approval.state === "waiting" && this.#approval.state !== "waiting")) return;
    this.#seen.add(approval);
    const decidedBy = approval.decidedBy ?? this.#approval.decidedBy;
    const changedInput = approval.changedInput ?? this.#approval.changedInput;
    this.#approval = { ...approval, decidedBy, changedInput };
    this.#form.showInput(this.#approval);
    this.#show();
  }

  #show() {
    const { words, language } = this.context;
    const { state, deadline } = this.#approval;
    const isOpen = state === "waiting";
    this.element.dataset.state = state;
    setText(this.#title, isOpen ? words.waits : "");
    setText(this.#deadline, isOpen ? words.until(formatTime(deadline, language)) : "");
    const hadFocus = this.#form.element.contains(activeElementOf(this.element));
    for (const part of [this.#title.parentElement, this.#facts, this.#form.element]) if (part) part.hidden = !isOpen;
    if (!isOpen) this.#hint.hidden = true;
    setText(this.#outcome, isOpen ? "" : outcomeWords(this.#approval, words));
    if (!isOpen && hadFocus) this.#outcome.focus({ preventScroll: true });
  }

  #allow() {
    this.#hint.hidden = true;
    this.#form.allow(true);
  }

  /** @param {string} text */
  #refuse(text) {
    this.#form.allow(false);
    setText(this.#hint, text);
    this.#hint.hidden = false;
  }

  /** Find out whether this person may decide, and what has become of it. */
  async #lookUp() {
    const { words, actions } = this.context;
    try {
      const read = await actions.read(this.#approval.id);
      if (this.#approval.state !== "waiting") return;
      this.update(read);
      if (read.state === "waiting") this.#allow();
    } catch (error) {
      if (statusOf(error) !== 403) actions.note(error);
      if (this.#approval.state === "waiting") this.#refuse(words.mayNot);
    }
  }

  /** @param {Decision} decision */
  async #decide(decision) {
    const { id, inputHash } = this.#approval;
    try {
      const decided = await this.context.actions.decide(id, { ...decision, inputHash });
      this.update(decision.input === undefined ? decided : { ...decided, changedInput: decision.input });
    } catch (error) {
      await this.#tellRefusal(error);
    }
  }

  /** @param {any} error */
  async #tellRefusal(error) {
    const { words } = this.context;
    const message = error instanceof Error ? error.message : words.failed;
    const status = statusOf(error);
    if (status === 403)
      this.#refuse(words.own); // it was read with the right to decide
    else if (status === 404) this.#refuse(words.gone);
    else if (status === 409) await this.#readAgain();
    else this.#form.tell(`${status === 400 ? words.doesNotFit : words.failed} ${message}`);
  }

  /** Show what has happened meanwhile: somebody has decided, the time is over, or it is about another call. */
  async #readAgain() {
    const { words, actions } = this.context;
    const before = this.#approval.inputHash;
    try {
      this.update(await actions.read(this.#approval.id));
      if (this.#approval.state !== "waiting")
        setText(this.#outcome, `${words.isLate} ${outcomeWords(this.#approval, words)}`);
      else this.#form.tell(before === this.#approval.inputHash ? words.failed : words.otherInput);
    } catch (error) {
      actions.note(error);
      this.#form.tell(words.failed);
    }
  }
}

/** @param {ApprovalView} approval @param {ApprovalWords} words */
export function outcomeWords({ state, decidedBy, reason, changedInput }, words) {
  const what = words.states[state] ?? state;
  const isPersons = state === "approved" || state === "denied";
  const who = isPersons && decidedBy ? words.by(what, decidedBy) : what;
  const changed = changedInput === undefined ? "" : ` ${words.withChanges}`;
  return `${who}${changed}${reason ? `: ${reason}` : isPersons ? "." : ""}`;
}

/**
 * What the call does, and why it is asked about.
 *
 * @param {ApprovalView} approval
 * @param {string} title
 * @param {ApprovalWords} words
 */
function factsOf({ description, reasons, toolName }, title, words) {
  const why = reasons.map((reason) => words.reasons[reason]).filter((text) => text && !description.includes(text));
  const name = title.includes(toolName) ? null : h("code", {}, toolName);
  return [
    h("p", { dir: "auto" }, ...codeInWords(description)),
    (name || why.length > 0) && h("p", { class: "approval-quiet" }, name, ...why.map((text) => ` ${text}`)),
  ].filter((each) => each !== false);
}

/** @param {any} error */
function statusOf(error) {
  return typeof error?.status === "number" ? error.status : 0;
}

/** @param {HTMLElement} element */
function activeElementOf(element) {
  return /** @type {ShadowRoot | Document} */ (element.getRootNode()).activeElement ?? null;
}

/** @param {string} text Written for models: names in it are between backquotes. */
function codeInWords(text) {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}
