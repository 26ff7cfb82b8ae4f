/** The client of one service and one caller. */

/**
 * @import { FermataOptions, FollowOptions, PromptImage, StartOptions, ToolOutput, UndoOptions, CallOptions } from "./types.js"
 */
import { untilAborted } from "./deadline.js";
import { FermataError } from "./errors.js";
import { imageParts } from "./images.js";
import { makeResources } from "./resources.js";
import { Service } from "./service.js";
import { pathOf } from "./transport.js";
import { Turn } from "./turn.js";
import { toHex } from "./uploads.js";

export class Fermata {
  #service;

  /** @param {FermataOptions} [options] */
  constructor(options = {}) {
    this.#service = new Service(options);
    const resources = makeResources(this.#service);
    this.conversations = resources.conversations;
    this.credentials = resources.credentials;
    this.models = resources.models;
    this.defaults = resources.defaults;
    this.budgets = resources.budgets;
    this.audit = resources.audit;
    this.bridges = resources.bridges;
    this.agents = resources.agents;
    this.approvals = resources.approvals;
    this.remoteTools = resources.remoteTools;
    this.webhooks = resources.webhooks;
    this.scopes = resources.scopes;
    this.tools = resources.tools;
    this.apiKeys = resources.apiKeys;
    this.exports = resources.exports;
    this.erasures = resources.erasures;
  }

  /**
   * Start a turn. The promise resolves when the service has started it.
   *
   * @param {StartOptions} options
   * @returns {Promise<Turn>}
   */
  async start({
    scope,
    prompt,
    images,
    conversationId,
    model,
    snapshot,
    revision,
    context,
    idempotencyKey,
    browserTools,
    ...options
  }) {
    const { executor, signal } = options;
    const isMute = !(browserTools ?? executor); // nobody would carry out the tools of the editor
    const isGiven = snapshot !== undefined;
    const state = isGiven ? { snapshot, revision } : ((await untilAborted(executor?.snapshot?.(), signal)) ?? {});
    const conversation = await this.#openConversation(scope, conversationId, model, signal);
    const words = images?.length ? { content: await contentOf(prompt, images) } : { prompt };
    const tools = isMute ? { browserTools: false } : {};
    const content = { conversationId: conversation, ...words, ...tools, snapshot: state.snapshot };
    const page = { revision: revision ?? state.revision, context: context ?? (await executor?.context?.()) };
    const body = await this.#service.fit({ ...content, ...page }, signal);
    const start = { path: pathOf("chat", scope), body, idempotencyKey: idempotencyKey ?? newKey() };
    const isDoubtful = idempotencyKey !== undefined;
    const members = { fermata: this, service: this.#service, start, conversationId: conversation, scope, isDoubtful };
    try {
      return await begin(new Turn(members, options), start.idempotencyKey);
    } catch (error) {
      this.#service.forgetUploads(body); // should they be what was refused, they are uploaded again
      throw error;
    }
  }

  /**
   * Follow a turn that runs or has ended, such as after the page was loaded again.
   *
   * @param {string} bridgeId
   * @param {FollowOptions & {afterSeq?: number, scope?: string, conversationId?: string}} [options] `afterSeq` is the number
   *   of the last event that is known already.
   * @returns {Turn}
   */
  follow(bridgeId, { afterSeq, scope, conversationId, ...options } = {}) {
    const members = { bridgeId, afterSeq, scope, conversationId, isDoubtful: true };
    return new Turn({ fermata: this, service: this.#service, ...members }, options);
  }

  /**
   * Undo the edits of an ended turn, the newest first: a turn of its own.
   *
   * @param {string} bridgeId
   * @param {UndoOptions} [options] `through` is the effect key of the last edit to undo; without it, all are.
   * @returns {Promise<Turn>}
   */
  async undo(bridgeId, { through, idempotencyKey, ...options } = {}) {
    const body = through === undefined ? {} : { through };
    const start = { path: pathOf("bridges", bridgeId, "undo"), body, idempotencyKey: idempotencyKey ?? newKey() };
    const isDoubtful = idempotencyKey !== undefined;
    const turn = new Turn({ fermata: this, service: this.#service, start, isDoubtful }, options);
    return begin(turn, start.idempotencyKey);
  }

  /**
   * Answer a tool request that was carried out by other means than an executor. The same answer may be given again.
   *
   * @param {string} bridgeId
   * @param {string} requestId
   * @param {ToolOutput} output
   * @param {{snapshot?: any, revision?: string} & CallOptions} [options]
   * @returns {Promise<boolean>} Whether it was accepted: not if somebody else has answered, or the time is over.
   */
  answer(bridgeId, requestId, output, { signal, ...state } = {}) {
    return this.#service.answer({ bridgeId, requestId, result: output, ...state }, signal);
  }

  /**
   * End a turn.
   *
   * @param {string} bridgeId
   * @param {CallOptions} [options]
   */
  cancel(bridgeId, options) {
    return this.bridges.cancel(bridgeId, options);
  }

  /**
   * List all edits of a turn.
   *
   * @param {string} bridgeId
   * @param {CallOptions} [options]
   * @returns {Promise<Record<string, any>[]>}
   */
  async journal(bridgeId, { signal } = {}) {
    const entries = [];
    const seen = new Set();
    for (let cursor; !seen.has(cursor); ) {
      seen.add(cursor);
      const page = await this.bridges.journal(bridgeId, { cursor, signal });
      entries.push(...(page.entries ?? []));
      cursor = page.nextCursor ?? undefined; // without one, it is that of the first page
    }
    return entries;
  }

  /**
   * Return the conversation to prompt in: a new one, or the given one with the model that it is to have.
   *
   * @param {string} scope
   * @param {string | undefined} id
   * @param {StartOptions["model"]} model
   * @param {AbortSignal} [signal]
   * @returns {Promise<string>}
   */
  async #openConversation(scope, id, model, signal) {
    const choice = typeof model === "string" ? { modelId: model } : model;
    if (id !== undefined) {
      if (choice) await this.conversations.update(id, choice, { signal });
      return id;
    }
    const body = { scope: /** @type {"site"} */ (scope), ...choice };
    return (await this.conversations.create(body, { signal })).id;
  }
}

/**
 * @param {string | undefined} prompt
 * @param {PromptImage[]} images
 */
async function contentOf(prompt, images) {
  const text = prompt?.trim() ? [{ kind: "text", text: prompt }] : [];
  return [...text, ...(await imageParts(images))];
}

/**
 * Wait until a turn has started. An error has what is needed to join it, should it have started all the same.
 *
 * @param {Turn} turn
 * @param {string} idempotencyKey
 */
async function begin(turn, idempotencyKey) {
  try {
    return await turn.started();
  } catch (error) {
    // 409: something else stands in the way, or the key itself.
    if (error instanceof FermataError && error.status !== 409) {
      Object.assign(error, { idempotencyKey, conversationId: turn.conversationId });
    }
    throw error;
  }
}

/** @returns {string} A key that no other request has. */
const newKey = () => toHex(crypto.getRandomValues(new Uint8Array(16)));
