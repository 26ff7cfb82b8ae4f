/** The conversation that is shown. */

/** @import { ConversationMemory } from "./conversation-memory.js" */
/** @import { FollowedTurn } from "./followed-turn.js" */
/** @import { ModelChoices } from "./model-choices.js" */
/** @import { SessionStore } from "./session-state.js" */
import { describeError } from "./problems.js";
import { itemsFromMessages } from "./thread.js";

/**
 * @typedef {object} ConversationParts
 * @property {any} client
 * @property {SessionStore} store
 * @property {string} scope
 * @property {string} [space] The content space of new conversations.
 * @property {ConversationMemory} memory
 * @property {FollowedTurn} followed
 * @property {ModelChoices} models
 * @property {(bridgeId: string, conversationId: string) => any} follow Follows a turn that runs.
 */

export class OpenConversation {
  #parts;
  /** Another tab has begun a turn while this one was busy. */
  #hasMissedTurn = false;
  /** What loads now, if something does. @type {Promise<unknown>} */
  loading = Promise.resolve();

  /** @param {ConversationParts} parts */
  constructor(parts) {
    this.#parts = parts;
  }

  /**
   * Show a conversation, and follow the turn that runs in it.
   *
   * @param {string} id
   */
  open(id) {
    const opening = this.#open(id);
    this.loading = opening.catch(() => {});
    return opening;
  }

  /** @param {string} id */
  async #open(id) {
    const { client, store } = this.#parts;
    const epoch = this.#leave();
    store.set({ isLoading: true, problem: null });
    try {
      const page = await client.conversations.get(id);
      if (epoch === store.epoch) this.#show(page, epoch);
    } catch (error) {
      if (epoch !== store.epoch) return;
      store.set({ problem: describeError(error) });
      throw error;
    } finally {
      if (epoch === store.epoch) store.set({ isLoading: false });
    }
  }

  /**
   * @param {{conversation: Record<string, any>, nextCursor?: string}} page
   * @param {number} epoch
   */
  #show({ conversation, nextCursor }, epoch) {
    const { store, memory, followed, models, follow } = this.#parts;
    const { messages, activeTurn, ...rest } = conversation;
    // The log of the running turn has all of it, so its stored messages are not shown as well.
    const isOfRunning = (/** @type {any} */ line) =>
      activeTurn && line.role !== "user" && line.id.startsWith(`${activeTurn.bridgeId}-`);
    const lines = messages.filter((/** @type {any} */ line) => !isOfRunning(line));
    const model = rest.credentialId ? { credentialId: rest.credentialId, modelId: rest.modelId } : store.state.model;
    memory.remember(rest.id);
    store.set({ conversation: rest, items: itemsFromMessages(lines), olderCursor: nextCursor ?? null, model });
    models.describe();
    const last = store.state.items.findLast((item) => item.kind === "turn");
    if (last?.kind === "turn") followed.countEdits(last, epoch);
    if (activeTurn) followed.show(follow(activeTurn.bridgeId, rest.id));
  }

  /**
   * @param {string} id
   * @param {boolean} isAsked The host has named it, so that it is a problem if it is not there.
   */
  async openRemembered(id, isAsked) {
    try {
      await this.open(id);
    } catch (error) {
      if (/** @type {any} */ (error).status !== 404) throw error;
      this.startNew(); // it was deleted elsewhere
      if (isAsked) this.#parts.store.set({ problem: describeError(error) });
    }
  }

  /** @param {string} id */
  async reopen(id) {
    await this.open(id).catch(() => {}); // the state says what went wrong
  }

  /** Begin a conversation: with the next prompt. A turn that runs in the one before goes on. */
  startNew() {
    this.#leave();
    this.#parts.memory.remember(null);
    this.#parts.store.set({ conversation: null, items: [], olderCursor: null, problem: null });
  }

  /** Show older messages. */
  async loadOlder() {
    const { client, store } = this.#parts;
    const { conversation, olderCursor } = store.state;
    const { epoch } = store;
    if (!conversation || !olderCursor) return;
    store.set({ olderCursor: null }); // asked for twice, they would be shown twice
    try {
      const page = await client.conversations.get(conversation.id, { before: olderCursor });
      if (epoch !== store.epoch) return;
      const older = itemsFromMessages(page.conversation.messages);
      store.set({ items: [...older, ...store.state.items], olderCursor: page.nextCursor ?? null });
    } catch (error) {
      if (epoch === store.epoch) store.set({ olderCursor, problem: describeError(error) });
    }
  }

  /**
   * The conversation to ask in: a new one is kept before the turn starts, so that the panel finds the turn if it is loaded
   * again just then, and that a prompt that was refused is asked in the same one next time.
   *
   * @param {number} epoch
   * @returns {Promise<string>}
   */
  async idFor(epoch) {
    const { client, store, scope, space } = this.#parts;
    const { conversation, model } = store.state;
    if (conversation) return conversation.id;
    const made = await client.conversations.create({ scope, ...(space && { space }), ...model });
    if (epoch === store.epoch) {
      this.#parts.memory.remember(made.id);
      store.set({ conversation: made });
    }
    return made.id;
  }

  /**
   * Show what the panel did not know when it was refused: that the conversation was deleted elsewhere, or that another turn
   * runs in it.
   *
   * @param {any} error
   * @param {number} epoch
   */
  async lookAgain({ status }, epoch) {
    const { store } = this.#parts;
    const { conversation, problem } = store.state;
    if (status === 404) await this.#refresh(epoch);
    if (status !== 409 || !conversation) return;
    await this.reopen(conversation.id);
    if (!store.state.problem && store.state.conversation?.id === conversation.id) store.set({ problem });
  }

  /**
   * Show what the end of a turn has changed.
   *
   * @param {number} epoch
   */
  async afterTurn(epoch) {
    const id = this.#parts.store.state.conversation?.id;
    if (this.#hasMissedTurn && id) await this.reopen(id);
    else await this.#refresh(epoch);
  }

  /**
   * Show the turn that another tab has begun.
   *
   * @param {{conversationId?: string, bridgeId?: string}} begun
   */
  hearOf({ conversationId, bridgeId }) {
    const { conversation, running, isStarting } = this.#parts.store.state;
    if (!conversation || conversation.id !== conversationId) return;
    if (running || isStarting) this.#hasMissedTurn ||= running?.view.bridgeId !== bridgeId;
    else this.reopen(conversation.id);
  }

  /**
   * Read the title and the totals that the turn has changed.
   *
   * @param {number} epoch
   */
  async #refresh(epoch) {
    const { client, store } = this.#parts;
    const id = store.state.conversation?.id;
    if (!id) return;
    try {
      const { conversation } = await client.conversations.get(id, { limit: 1 });
      if (epoch !== store.epoch) return;
      const { messages: _messages, activeTurn: _turn, ...rest } = conversation;
      store.set({ conversation: rest });
    } catch (error) {
      if (epoch !== store.epoch || /** @type {any} */ (error).status !== 404) return;
      this.startNew(); // it was deleted elsewhere
      store.set({ problem: describeError(error) });
    }
  }

  /** Stop showing the conversation. @returns {number} */
  #leave() {
    const { store, followed } = this.#parts;
    const { running } = store.state;
    if (running && !running.view.end) running.isLost = true; // it is shown on if nothing else can be opened
    followed.detach();
    store.epoch += 1;
    this.#hasMissedTurn = false;
    // What loads is for the one before.
    store.set({ running: null, isStarting: false, isLoading: false, connection: "online" });
    return store.epoch;
  }
}
