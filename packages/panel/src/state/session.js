/** What the panel shows, and what its buttons do: no DOM, so that it can be tested and used without the panel. */

import { Approvals } from "./approvals.js";
/** @import { Lock, ModelChoice } from "./session-state.js" */
/** @import { ThreadImage, TurnItem } from "./thread.js" */
import { ConversationMemory } from "./conversation-memory.js";
import { bridgeOf, FollowedTurn } from "./followed-turn.js";
import { ModelChoices } from "./model-choices.js";
import { OpenConversation } from "./open-conversation.js";
import { OtherTabs } from "./other-tabs.js";
import { describeError } from "./problems.js";
import { lockFromError, SessionStore } from "./session-state.js";
import { TurnStarts } from "./turn-starts.js";

const MEMORY = "fermata-panel:";

export class Session extends EventTarget {
  #store = new SessionStore(this);
  #client;
  #scope;
  /** @type {any} */
  executor;
  #memory;
  #models;
  #followed;
  #conversation;
  #tabs;
  #starts;

  /**
   * @param {object} options
   * @param {any} options.client A `Fermata` of `@fermata/client`.
   * @param {string} options.scope
   * @param {string} [options.space] The content space of new conversations, for an assistant that works in one.
   * @param {any} [options.executor] Carries out the tools of the document.
   * @param {Pick<Storage, "getItem" | "setItem" | "removeItem"> | null} [options.storage] Remembers the open conversation.
   */
  constructor({ client, scope, space, executor, storage = null }) {
    super();
    const store = this.#store;
    this.#client = client;
    this.#scope = scope;
    this.executor = executor;
    const place = MEMORY + scope + (space ? ` ${space}` : "");
    this.#memory = new ConversationMemory(store, storage, place);
    this.#models = new ModelChoices(client, store);
    this.#followed = new FollowedTurn(client, store, (epoch) => this.#conversation.afterTurn(epoch));
    const shared = { client, scope, space, store, models: this.#models, followed: this.#followed };
    const follow = (/** @type {string} */ bridgeId, /** @type {string} */ id) => this.#follow(bridgeId, id);
    this.#conversation = new OpenConversation({ ...shared, memory: this.#memory, follow });
    this.#tabs = new OtherTabs(place, (begun) => this.#conversation.hearOf(begun));
    const followOptions = (/** @type {number} */ epoch) => this.#followOptions(epoch);
    this.approvals = new Approvals(client, store, scope);
    this.#starts = new TurnStarts({ ...shared, conversation: this.#conversation, tabs: this.#tabs, followOptions });
  }

  get state() {
    return this.#store.state;
  }

  /** Stop following; the turn goes on. */
  close() {
    this.#store.isClosed = true;
    this.#store.epoch += 1;
    this.#followed.detach();
    this.#tabs.close();
  }

  /**
   * Find out whether something can be asked, and show the conversation that was open.
   *
   * @param {string} [conversationId] The one to show; otherwise the one that this browser showed last.
   */
  load(conversationId) {
    this.#conversation.loading = this.#load(conversationId);
    return this.#conversation.loading;
  }

  /** Wait until nothing loads, so that what is asked next is asked in the conversation that is then shown. */
  async loaded() {
    await this.#conversation.loading;
  }

  /** @param {string | undefined} conversationId */
  async #load(conversationId) {
    const store = this.#store;
    const { epoch } = store;
    store.set({ isLoading: true, lock: null, lockProblem: null, problem: null });
    try {
      const [credentials, defaults] = await Promise.all([
        this.#client.credentials.list(),
        this.#client.defaults.list(),
      ]);
      if (epoch !== store.epoch) return; // closed, or the person was faster and opened a conversation
      const model = defaults[this.#scope] ?? null;
      /** @type {Lock} */
      const lock = credentials.length === 0 ? "setup" : model ? null : "chooseModel";
      store.set({ model, lock });
      const remembered = conversationId ?? this.#memory.recall();
      if (remembered) await this.#conversation.openRemembered(remembered, conversationId !== undefined);
      this.#models.describe();
    } catch (error) {
      if (!store.isClosed) store.set(lockFromError(error));
    } finally {
      if (!store.isClosed) store.set({ isLoading: false });
    }
  }

  /** Begin a conversation: with the next prompt. A turn that runs in the one before goes on. */
  startNewChat() {
    this.#conversation.startNew();
  }

  /**
   * Show a conversation, and follow the turn that runs in it.
   *
   * @param {string} id
   */
  openConversation(id) {
    return this.#conversation.open(id);
  }

  /** Show older messages of the conversation. */
  loadOlder() {
    return this.#conversation.loadOlder();
  }

  /**
   * Ask.
   *
   * @param {string} prompt
   * @param {Blob[]} [images]
   * @returns {Promise<boolean>} Whether the turn has started; otherwise `state.problem` says why not.
   */
  async send(prompt, images = []) {
    await this.loaded();
    if (this.#store.isClosed || this.state.lock || this.#isBusy) return false;
    return this.#starts.send(prompt, images);
  }

  get #isBusy() {
    return Boolean(this.state.running) || this.state.isStarting;
  }

  /**
   * Do once more what a turn has failed to do: ask its prompt, or undo.
   *
   * @param {TurnItem} item
   */
  async retry(item) {
    const { items } = this.state;
    const undone =
      item.view.undoes && items.find((each) => each.kind === "turn" && bridgeOf(each) === item.view.undoes);
    if (undone) return this.undo(/** @type {TurnItem} */ (undone));
    const user = items.slice(0, items.indexOf(item)).findLast((each) => each.kind === "user");
    if (user?.kind !== "user") return;
    try {
      const load = (/** @type {ThreadImage} */ { blob, url }) => blob ?? this.fetchImage(url ?? "");
      await this.send(user.text, await Promise.all(user.images.map(load)));
    } catch (error) {
      this.#store.set({ problem: describeError(error) });
    }
  }

  /** Follow the conversation's turn again, after one that could not be followed to its end. */
  async followAgain() {
    if (this.state.conversation && !this.state.running) await this.#conversation.reopen(this.state.conversation.id);
  }

  /** End the running turn, also one that is only about to start. */
  stop() {
    return this.#starts.stop();
  }

  /**
   * Take back the edits of a turn.
   *
   * @param {TurnItem} item
   */
  async undo(item) {
    if (bridgeOf(item) && !this.#isBusy) await this.#starts.undo(item);
  }

  /**
   * A page of this scope's conversations.
   *
   * @param {{cursor?: string}} [page]
   */
  listConversations(page = {}) {
    return this.#client.conversations.list({ scope: this.#scope, ...page });
  }

  /**
   * @param {string} id
   * @param {string} title
   */
  async renameConversation(id, title) {
    const changed = await this.#client.conversations.update(id, { title });
    if (this.state.conversation?.id === id) this.#store.set({ conversation: { ...this.state.conversation, title } });
    return changed;
  }

  /** @param {string} id */
  async removeConversation(id) {
    await this.#client.conversations.remove(id);
    if (this.state.conversation?.id === id) this.startNewChat();
  }

  /** The models that the caller's credentials open; see `ModelChoices.list`. */
  listModels() {
    return this.#models.list();
  }

  /**
   * Use a model from the next prompt on.
   *
   * @param {ModelChoice} model
   * @param {Record<string, any>} [info]
   */
  chooseModel(model, info) {
    this.#models.choose(model, info);
  }

  dismissProblem() {
    this.#store.set({ problem: null });
  }

  /**
   * @param {string} path
   * @returns {Promise<Blob>}
   */
  fetchImage(path) {
    const match = /\/conversations\/([^/]+)\/messages\/([^/]+)\/images\/(\d+)$/.exec(path);
    if (!match) return Promise.reject(new TypeError("This is no address of an image."));
    const [conversation, message] = [match[1], match[2]].map(decodeURIComponent);
    return this.#client.conversations.image(conversation, message, Number(match[3]));
  }

  /**
   * Follow a turn that runs: of another tab, or of this one before it was loaded again.
   *
   * @param {string} bridgeId
   * @param {string} conversationId
   */
  #follow(bridgeId, conversationId) {
    const options = { afterSeq: 0, scope: this.#scope, conversationId };
    return this.#client.follow(bridgeId, { ...options, ...this.#followOptions(this.#store.epoch) });
  }

  /** @param {number} epoch */
  #followOptions(epoch) {
    const store = this.#store;
    const onConnection = (/** @type {string} */ connection) => {
      if (epoch === store.epoch && store.state.connection !== connection) store.set({ connection });
    };
    return { executor: this.executor, onConnection };
  }
}
