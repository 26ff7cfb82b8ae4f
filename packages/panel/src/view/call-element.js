/** One tool call as it is shown: a row that opens. */

/** @import { CallView } from "../state/turn-view.js" */
/** @import { ViewContext } from "./turn-element.js" */
import { ApprovalCard } from "../approvals/approval-card.js";
import { isAwaitingDecision } from "../state/turn-view.js";
import { describeCall } from "./call-description.js";
import { h, icon, setText } from "./dom.js";

const MAX_INPUT = 10_000;

/** What a call was given; only the beginning of what is too long to show. @param {any} input */
function inputWords(input) {
  const words = JSON.stringify(input, null, 2) ?? "";
  return words.length > MAX_INPUT ? `${words.slice(0, MAX_INPUT)} …` : words;
}

export class CallElement {
  #state = h("span", { class: "call-state" });
  #error = h("p", { class: "call-error", hidden: true });
  #shown = "";
  /** @type {ApprovalCard | undefined} */
  #card;

  /** @param {ViewContext} context @param {CallView} call */
  constructor(context, call) {
    this.context = context;
    const input = h("pre", { tabIndex: 0 });
    const details = h(
      "details",
      {},
      h(
        "summary",
        {},
        this.#state,
        h("span", { class: "call-name", dir: "auto" }, describeCall(call.name, call.input, context.words.calls)),
      ),
    );
    details.append(h("div", { class: "call-input" }, h("code", {}, call.name), input), this.#error);
    details.addEventListener("toggle", () => setText(input, inputWords(call.input)), { once: true });
    this.element = h("li", { class: "call" }, details);
  }

  /** @param {CallView} call @param {boolean} isOver The turn has ended, so that nothing is pending. */
  update(call, isOver) {
    this.#showApproval(call, isOver);
    const isWaiting = isAwaitingDecision(call);
    const state = call.state !== "pending" ? call.state : isOver ? "open" : isWaiting ? "waiting" : "pending";
    const key = `${state} ${call.isConflict} ${call.error}`;
    if (key === this.#shown) return;
    this.#shown = key;
    const { words } = this.context;
    const label = {
      pending: words.callPending,
      waiting: words.approval.waits,
      open: words.callOpen,
      ok: words.callOk,
      failed: call.isConflict ? words.callConflict : words.callFailed,
    };
    this.element.dataset.state = state;
    const sign = {
      ok: () => icon("check"),
      failed: () => icon("warn"),
      open: () => icon("close"),
      waiting: () => icon("hand"),
    };
    const shown = state === "pending" ? h("span", { class: "dot" }) : sign[state]();
    this.#state.replaceChildren(shown, h("span", { class: "hidden-words" }, label[state]));
    this.#error.hidden = !call.error;
    setText(this.#error, call.error ?? "");
  }

  /** @param {CallView} call @param {boolean} isOver */
  #showApproval({ approval, name, input, state }, isOver) {
    if (!approval) return;
    // Only a plan waits though its call was answered: its turn has ended with it, and somebody may still agree to it.
    const isLost = isOver && approval.state === "waiting" && state !== "ok";
    const shown = isLost ? { ...approval, state: /** @type {const} */ ("cancelled") } : approval;
    if (this.#card) return this.#card.update(shown);
    const { session, words, language } = this.context;
    const title = describeCall(name, input, words.calls);
    this.#card = new ApprovalCard({ words: words.approval, language, actions: session.approvals }, shown, { title });
    this.element.append(this.#card.element);
  }
}
