/** Approvals: the calls of the whole workspace that wait for a decision. */

import { APPROVAL_WORDS, ApprovalCard, adoptApprovalStyle, approvalFromService } from "@fermata/panel/approvals";
import { emptyView, h, problemView, showLoaded, table } from "../dom.js";
import { formatInstant } from "../format.js";
import { LANGUAGE, LANGUAGE_NAME, words } from "../words/index.js";

/** @import { PageContext } from "../shell/shell.js" */

const REFRESH_MS = 5_000;
const PAGE_SIZE = 20;
const SHOWN_DECISIONS = 20;

/** @param {HTMLElement} target @param {PageContext} context */
export async function show(target, context) {
  adoptApprovalStyle();
  const body = h("div");
  target.append(
    h("header", { class: "page-head" }, h("h1", {}, words.shell.pages.approvals)),
    h("p", { class: "lead" }, words.approvals.lead),
    body,
  );
  const inbox = new Inbox(context);
  await showLoaded(
    body,
    () => inbox.load(),
    () => inbox.element,
  );
  const timer = setInterval(
    () => inbox.isLoaded && document.visibilityState === "visible" && inbox.refresh(),
    REFRESH_MS,
  );
  context.signal.addEventListener("abort", () => clearInterval(timer));
}

/** What waits, and what was decided while the page is open. What a person writes into a card stays while others come. */
class Inbox {
  /** The cards by the ids of their approvals. @type {Map<string, ApprovalCard>} */
  #cards = new Map();
  #list = h("ul", { class: "approval-list", "aria-label": words.approvals.inbox });
  #empty = emptyView(words.approvals.empty, words.approvals.emptyText);
  #problem = h("div");
  #more;
  /** @type {string | undefined} */
  #next;
  #decided = h("section", { "aria-label": words.approvals.decided });
  #pages = 1;
  #isRefreshing = false;
  isLoaded = false;

  /** @param {PageContext} context */
  constructor(context) {
    this.context = context;
    this.#more = h("button", { type: "button", class: "button more", onclick: () => this.#loadMore() });
    this.#more.textContent = words.approvals.more;
    this.element = h("div", {}, this.#list, this.#empty, this.#problem, this.#more, this.#decided);
    const { client } = context;
    this.actions = {
      read: async (/** @type {string} */ id) => approvalFromService(await client.approvals.get(id)),
      decide: async (/** @type {string} */ id, /** @type {any} */ decision) =>
        approvalFromService(await client.approvals.decide(id, decision)),
      note: (/** @type {unknown} */ error) => console.warn(error),
    };
  }

  /** Read as many pages as are shown. */
  async load() {
    const { client, signal } = this.context;
    /** @type {any[]} */
    const waiting = [];
    this.#next = undefined;
    for (let page = 0; page < this.#pages; page += 1) {
      /** @type {{approvals: any[], nextCursor?: string}} */
      const answer = await client.approvals.list({ limit: PAGE_SIZE, cursor: this.#next, signal });
      waiting.push(...answer.approvals);
      this.#next = answer.nextCursor;
      if (!this.#next) break;
    }
    const { decisions } = await client.approvals.decisions({ limit: SHOWN_DECISIONS, signal });
    await this.#show(waiting);
    this.#decided.replaceChildren(...decisionViews(decisions));
    this.isLoaded = true;
  }

  async refresh() {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    try {
      await this.load();
      this.#problem.replaceChildren();
    } catch (error) {
      if (/** @type {any} */ (error).status === 401) this.#problem.replaceChildren(problemView(error));
    } finally {
      this.#isRefreshing = false;
    }
  }

  async #loadMore() {
    this.#pages += 1;
    this.#more.disabled = true;
    await this.refresh();
    this.#more.disabled = false;
  }

  /** @param {any[]} waiting */
  async #show(waiting) {
    const ids = new Set(waiting.map(({ approvalId }) => approvalId));
    for (const approval of waiting) if (!this.#cards.has(approval.approvalId)) this.#add(approval);
    const closed = [...this.#cards].filter(([id, card]) => !ids.has(id) && card.state === "waiting");
    await Promise.all(closed.map(([id, card]) => this.#readClosed(id, card)));
    this.#empty.hidden = this.#cards.size > 0;
    this.#more.hidden = !this.#next;
  }

  /** @param {any} approval */
  #add(approval) {
    const { approvalId, toolName, userId, scope } = approval;
    const schema = async (/** @type {string} */ name) => {
      const whole = await this.#schemaOf(scope, name);
      return approval.pendingPlanId && whole ? onlyMembersOf(approval.input, whole) : whole;
    };
    const actions = { ...this.actions, schema };
    const context = { words: APPROVAL_WORDS[LANGUAGE_NAME], language: LANGUAGE, actions };
    const title = approval.pendingPlanId ? words.approvals.planOf(userId) : words.approvals.callOf(toolName, userId);
    const card = new ApprovalCard(context, approvalFromService(approval), { title });
    this.#cards.set(approvalId, card);
    this.#list.append(h("li", {}, headOf(approval), card.element));
  }

  /**
   * Show what somebody else has decided, or that the turn has ended.
   *
   * @param {string} id
   * @param {ApprovalCard} card
   */
  async #readClosed(id, card) {
    try {
      card.update(await this.actions.read(id));
    } catch (error) {
      this.actions.note(error);
    }
  }

  /** @param {string} scope @param {string} name */
  async #schemaOf(scope, name) {
    try {
      const tools = await this.context.client.tools.list(scope);
      return tools.find((/** @type {any} */ tool) => tool.name === name)?.inputSchema ?? null;
    } catch (error) {
      this.actions.note(error); // fields are made of the call's own arguments
      return null;
    }
  }
}

/**
 * A plan that waits is changed in the members that it is shown with: its tool takes more of them, when a model calls it.
 *
 * @param {Record<string, any>} input
 * @param {{properties?: Record<string, any>}} schema
 */
function onlyMembersOf(input, schema) {
  const known = Object.entries(schema.properties ?? {}).filter(([name]) => Object.hasOwn(input, name));
  return { type: "object", properties: Object.fromEntries(known) };
}

/** @param {any} approval */
function headOf({ bridgeId, toolName, userId, scope, risk, capability, requestedAt }) {
  const { of, asked, turn, risks, capabilities } = words.approvals;
  const riskClass = /** @type {Record<string, string>} */ ({ high: "tag bad", moderate: "tag warn" })[risk] ?? "tag";
  return h(
    "div",
    { class: "approval-list-head" },
    h("h2", {}, toolName),
    h("span", { class: riskClass }, risks[risk] ?? risk),
    h("span", { class: "tag" }, capabilities[capability] ?? capability),
    h("span", { class: "quiet-text" }, `${of(userId, scope)} · ${asked(formatInstant(requestedAt))}`),
    h("a", { href: `#/turns/${encodeURIComponent(bridgeId)}` }, turn),
  );
}

/** @param {any[]} decisions */
function decisionViews(decisions) {
  const { decided, decidedColumns, nothingDecided, nobody, outcomes } = words.approvals;
  if (!decisions.length) return [h("h2", {}, decided), h("p", { class: "quiet-text" }, nothingDecided)];
  const { at, tool, outcome, by, reason } = decidedColumns;
  const rows = decisions.map((decision) => [
    formatInstant(decision.at),
    h("a", { href: `#/turns/${encodeURIComponent(decision.bridgeId)}` }, decision.tool),
    h("span", { class: decision.outcome === "approved" ? "tag good" : "tag" }, outcomes[outcomeOf(decision)]),
    decision.decidedBy ?? nobody,
    decision.reason ?? "",
  ]);
  return [table(decided, [at, tool, outcome, by, reason], rows)];
}

/** @param {{outcome: string, inputHash?: string, decidedInputHash?: string}} decision */
function outcomeOf({ outcome, inputHash, decidedInputHash }) {
  const isChanged = outcome === "approved" && decidedInputHash && decidedInputHash !== inputHash;
  return isChanged ? "approvedWithChanges" : outcome;
}
