/** What a person may decide about, and decides. */

/** @import { ApprovalView } from "../approvals/approval-view.js" */
/** @import { Decision } from "../approvals/decision-form.js" */
/** @import { SessionStore } from "./session-state.js" */
import { approvalFromService } from "../approvals/approval-view.js";

export class Approvals {
  #client;
  #store;
  #scope;
  /** @type {Promise<Record<string, any>[]> | null} */
  #tools = null;

  /**
   * @param {any} client
   * @param {SessionStore} store
   * @param {string} scope
   */
  constructor(client, store, scope) {
    this.#client = client;
    this.#store = store;
    this.#scope = scope;
  }

  /**
   * Read an approval. Whoever may not decide is refused with status 403.
   *
   * @param {string} id
   * @returns {Promise<ApprovalView>}
   */
  async read(id) {
    return approvalFromService(await this.#client.approvals.get(id));
  }

  /**
   * @param {string} id
   * @param {Decision & {inputHash: string}} decision
   * @returns {Promise<ApprovalView>}
   */
  async decide(id, decision) {
    return approvalFromService(await this.#client.approvals.decide(id, decision));
  }

  /**
   * The schema of a tool's arguments, where the service lists it. Nothing depends on it.
   *
   * @param {string} toolName
   * @returns {Promise<Record<string, any> | null>}
   */
  async schema(toolName) {
    try {
      this.#tools ??= this.#client.tools.list(this.#scope);
      const tools = (await this.#tools) ?? [];
      return tools.find((tool) => tool.name === toolName)?.inputSchema ?? null;
    } catch (error) {
      this.#tools = null;
      this.note(error);
      return null;
    }
  }

  /** @param {unknown} error */
  note(error) {
    this.#store.note(error);
  }
}
