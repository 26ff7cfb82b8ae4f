/** What the panel shows, and what its buttons do: no DOM, so that it can be tested and used without the panel. */

/** @import { ThreadImage, ThreadItem, TurnItem, UserItem } from "./thread.js" */
import { describeError } from "./problems.js";
import { itemsFromMessages } from "./thread.js";
import { callsOf, emptyTurn, foldEvent } from "./turn-view.js";

/** @typedef {{credentialId: string, modelId: string}} ModelChoice */

/**
 * @typedef {object} ModelOption
 * @property {string} credentialId
 * @property {string} credentialLabel
 * @property {string} providerId
 * @property {Record<string, any>} model As `GET providers/{id}/models` lists it.
 */

/** @typedef {null | "setup" | "chooseModel" | "signedOut" | "forbidden" | "unreachable"} Lock Why nothing can be asked. */

/** @typedef {{message: string, hint: string, canRetry: boolean}} Problem */

/**
 * @typedef {object} SessionState
 * @property {boolean} isLoading
 * @property {Lock} lock
 * @property {string} lockWords The service's own words about it; empty where it has none.
 * @property {Record<string, any> | null} conversation
 * @property {ThreadItem[]} items
 * @property {string | null} olderCursor There are older messages.
 * @property {boolean} isStarting A prompt was sent, and the service has not said yet that its turn runs.
 * @property {TurnItem | null} running
 * @property {string} connection As a turn's `connection`, or `online` without one.
 * @property {ModelChoice | null} model
 * @property {Record<string, any> | null} modelInfo
 * @property {Problem | null} problem
 */

const MEMORY = "fermata-panel:";

export class Session extends EventTarget {
  /** @type {SessionState} */
  state = {
    isLoading: true,
    lock: null,
    lockWords: "",
    conversation: null,
    items: [],
    olderCursor: null,
    isStarting: false,
    running: null,
    connection: "online",
    model: null,
    modelInfo: null,
    problem: null,
  };

  #client;
  #scope;
  /** @type {any} */
  executor;
  #storage;
  /** @type {any} */
  #turn = null;
  /** @type {BroadcastChannel | null} */
  #channel = null;
  /** Rises whenever another conversation is shown, so that late answers about the one before are dropped. */
  #epoch = 0;
  #keys = 0;
  #isClosed = false;
  /** The person has stopped a turn that the service has not started yet. */
  #isUnwanted = false;
  /** Another tab has begun a turn while this one was busy. */
  #hasMissedTurn = false;
  /** What loads now, if something does. @type {Promise<unknown>} */
  #loading = Promise.resolve();

  /**
   * @param {object} options
   * @param {any} options.client A `Fermata` of `@fermata/client`.
   * @param {string} options.scope
   * @param {any} [options.executor] Carries out the tools of the document.
   * @param {Pick<Storage, "getItem" | "setItem" | "removeItem"> | null} [options.storage] Remembers the open conversation.
   */
  constructor({ client, scope, executor, storage = null }) {
    super();
    this.#client = client;
    this.#scope = scope;
    this.executor = executor;
    this.#storage = storage;
    this.#channel = openChannel(MEMORY + scope);
    if (this.#channel) this.#listenToOtherTabs(this.#channel);
  }

  /** Stop following; the turn goes on. */
  close() {
    this.#isClosed = true;
    this.#epoch += 1;
    this.#turn?.detach();
    this.#channel?.close();
    this.#channel = null;
  }

  /**
   * Find out whether something can be asked, and show the conversation that was open.
   *
   * @param {string} [conversationId] The one to show; otherwise the one that this browser showed last.
   */
  load(conversationId) {
    this.#loading = this.#load(conversationId);
    return this.#loading;
  }

  /** Wait until nothing loads, so that what is asked next is asked in the conversation that is then shown. */
  async loaded() {
    await this.#loading;
  }

  /** @param {string | undefined} conversationId */
  async #load(conversationId) {
    const epoch = this.#epoch;
    this.#set({ isLoading: true, lock: null, lockWords: "", problem: null });
    try {
      const [credentials, defaults] = await Promise.all([
        this.#client.credentials.list(),
        this.#client.defaults.list(),
      ]);
      if (epoch !== this.#epoch) return; // closed, or the person was faster and opened a conversation
      const model = defaults[this.#scope] ?? null;
      /** @type {Lock} */
      const lock = credentials.length === 0 ? "setup" : model ? null : "chooseModel";
      this.#set({ model, lock });
      const remembered = conversationId ?? this.#recall();
      if (remembered) await this.#openRemembered(remembered, conversationId !== undefined);
      this.#describeModel();
    } catch (error) {
      if (!this.#isClosed) this.#set(lockFromError(error));
    } finally {
      if (!this.#isClosed) this.#set({ isLoading: false });
    }
  }

  /** Begin a conversation: with the next prompt. A turn that runs in the one before goes on. */
  startNewChat() {
    this.#leave();
    this.#remember(null);
    this.#set({ conversation: null, items: [], olderCursor: null, problem: null });
  }

  /**
   * Show a conversation, and follow the turn that runs in it.
   *
   * @param {string} id
   */
  openConversation(id) {
    const opening = this.#open(id);
    this.#loading = opening.catch(() => {});
    return opening;
  }

  /** @param {string} id */
  async #open(id) {
    const epoch = this.#leave();
    this.#set({ isLoading: true, problem: null });
    try {
      const { conversation, nextCursor } = await this.#client.conversations.get(id);
      if (epoch !== this.#epoch) return;
      const { messages, activeTurn, ...rest } = conversation;
      // The log of the running turn has all of it, so its stored messages are not shown as well.
      const isOfRunning = (/** @type {any} */ line) =>
        activeTurn && line.role !== "user" && line.id.startsWith(`${activeTurn.bridgeId}-`);
      const lines = messages.filter((/** @type {any} */ line) => !isOfRunning(line));
      const model = rest.credentialId ? { credentialId: rest.credentialId, modelId: rest.modelId } : this.state.model;
      this.#remember(id);
      this.#set({ conversation: rest, items: itemsFromMessages(lines), olderCursor: nextCursor ?? null, model });
      this.#describeModel();
      const last = this.state.items.findLast((item) => item.kind === "turn");
      if (last?.kind === "turn") this.#countEdits(last, epoch);
      if (activeTurn) this.#attach(activeTurn.bridgeId, id);
    } catch (error) {
      if (epoch !== this.#epoch) return;
      this.#set({ problem: describeError(error) });
      throw error;
    } finally {
      if (epoch === this.#epoch) this.#set({ isLoading: false });
    }
  }

  /** Show older messages of the conversation. */
  async loadOlder() {
    const { conversation, olderCursor } = this.state;
    const epoch = this.#epoch;
    if (!conversation || !olderCursor) return;
    this.#set({ olderCursor: null }); // asked for twice, they would be shown twice
    try {
      const page = await this.#client.conversations.get(conversation.id, { before: olderCursor });
      if (epoch !== this.#epoch) return;
      const older = itemsFromMessages(page.conversation.messages);
      this.#set({ items: [...older, ...this.state.items], olderCursor: page.nextCursor ?? null });
    } catch (error) {
      if (epoch === this.#epoch) this.#set({ olderCursor, problem: describeError(error) });
    }
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
    if (this.#isClosed || this.state.lock || this.state.running || this.state.isStarting) return false;
    this.#isUnwanted = false;
    const epoch = this.#epoch;
    const user = this.#userItem(prompt, images);
    this.#set({ items: [...this.state.items, user], isStarting: true, problem: null });
    try {
      const turn = await this.#client.start({
        scope: this.#scope,
        prompt,
        images,
        conversationId: await this.#conversationFor(epoch),
        model: this.#changedModel(),
        executor: this.executor,
        onConnection: (/** @type {string} */ connection) => this.#setConnection(epoch, connection),
      });
      return this.#begin(turn, turn.conversationId, epoch);
    } catch (error) {
      if (epoch !== this.#epoch) return false;
      const items = this.state.items.filter((item) => item !== user);
      this.#set({ items, isStarting: false });
      this.#refuse(error);
      await this.#lookAgain(error, epoch);
      return false;
    }
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
      this.#set({ problem: describeError(error) });
    }
  }

  /** Follow the conversation's turn again, after one that could not be followed to its end. */
  async followAgain() {
    if (this.state.conversation && !this.state.running) await this.#reopen(this.state.conversation.id);
  }

  /** End the running turn, also one that is only about to start. */
  async stop() {
    this.#isUnwanted = this.state.isStarting;
    await this.#cancel(this.#turn);
  }

  /**
   * Take back the edits of a turn.
   *
   * @param {TurnItem} item
   */
  async undo(item) {
    const bridgeId = bridgeOf(item);
    if (!bridgeId || this.state.running || this.state.isStarting) return;
    const epoch = this.#epoch;
    this.#isUnwanted = false;
    this.#set({ isStarting: true, problem: null });
    try {
      const turn = await this.#client.undo(bridgeId, {
        executor: this.executor,
        onConnection: (/** @type {string} */ connection) => this.#setConnection(epoch, connection),
      });
      this.#begin(turn, this.state.conversation?.id, epoch);
    } catch (error) {
      if (epoch !== this.#epoch) return;
      this.#set({ isStarting: false });
      this.#refuse(error);
      await this.#lookAgain(error, epoch);
    }
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
    if (this.state.conversation?.id === id) this.#set({ conversation: { ...this.state.conversation, title } });
    return changed;
  }

  /** @param {string} id */
  async removeConversation(id) {
    await this.#client.conversations.remove(id);
    if (this.state.conversation?.id === id) this.startNewChat();
  }

  /**
   * The models that the caller's credentials open. A credential whose provider does not answer has no models and a
   * `problem`.
   *
   * @returns {Promise<{credential: Record<string, any>, models: Record<string, any>[], problem?: string}[]>}
   */
  async listModels() {
    const credentials = await this.#client.credentials.list();
    const list = async (/** @type {any} */ credential) => {
      try {
        const { providerId, id } = credential;
        return { credential, models: await this.#client.models.list({ providerId, credentialId: id }) };
      } catch (error) {
        return { credential, models: [], problem: describeError(error).message };
      }
    };
    return Promise.all(credentials.map(list));
  }

  /**
   * Use a model from the next prompt on.
   *
   * @param {ModelChoice} model
   * @param {Record<string, any>} [info]
   */
  chooseModel(model, info) {
    const lock = this.state.lock === "chooseModel" ? null : this.state.lock;
    this.#set({ model, modelInfo: info ?? null, lock, problem: null });
    if (!info) this.#describeModel();
  }

  dismissProblem() {
    this.#set({ problem: null });
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
   * Show a turn that has started. If the panel shows something else by now, the turn goes on as one that was left.
   *
   * @param {any} turn
   * @param {string | undefined} conversationId
   * @param {number} epoch When it was asked for.
   */
  #begin(turn, conversationId, epoch) {
    this.#channel?.postMessage({ conversationId, bridgeId: turn.id });
    if (epoch !== this.#epoch) turn.detach();
    else this.#show(turn, conversationId);
    if (this.#isUnwanted && epoch === this.#epoch) this.#cancel(turn);
    return true;
  }

  /**
   * The conversation to ask in: a new one is kept before the turn starts, so that the panel finds the turn if it is loaded
   * again just then, and that a prompt that was refused is asked in the same one next time.
   *
   * @param {number} epoch
   * @returns {Promise<string>}
   */
  async #conversationFor(epoch) {
    const { conversation, model } = this.state;
    if (conversation) return conversation.id;
    const made = await this.#client.conversations.create({ scope: this.#scope, ...model });
    if (epoch === this.#epoch) {
      this.#remember(made.id);
      this.#set({ conversation: made });
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
  async #lookAgain({ status }, epoch) {
    const { conversation, problem } = this.state;
    if (status === 404) await this.#refreshConversation(epoch);
    if (status !== 409 || !conversation) return;
    await this.#reopen(conversation.id);
    if (!this.state.problem && this.state.conversation?.id === conversation.id) this.#set({ problem });
  }

  /** @param {any} turn */
  async #cancel(turn) {
    const epoch = this.#epoch;
    try {
      await turn?.cancel();
    } catch (error) {
      if (epoch === this.#epoch) this.#refuse(error);
    }
  }

  /**
   * Say that a request was refused. Who is signed out is told how to go on.
   *
   * @param {any} error
   */
  #refuse(error) {
    if (error?.status === 401) this.#set(lockFromError(error));
    else this.#set({ problem: describeError(error) });
  }

  /**
   * @param {string} id
   * @param {boolean} isAsked The host has named it, so that it is a problem if it is not there.
   */
  async #openRemembered(id, isAsked) {
    try {
      await this.openConversation(id);
    } catch (error) {
      if (/** @type {any} */ (error).status !== 404) throw error;
      this.startNewChat(); // it was deleted elsewhere
      if (isAsked) this.#set({ problem: describeError(error) });
    }
  }

  /**
   * Follow a turn that runs: of another tab, or of this one before it was loaded again.
   *
   * @param {string} bridgeId
   * @param {string} conversationId
   */
  #attach(bridgeId, conversationId) {
    const epoch = this.#epoch;
    const turn = this.#client.follow(bridgeId, {
      afterSeq: 0,
      scope: this.#scope,
      conversationId,
      executor: this.executor,
      onConnection: (/** @type {string} */ connection) => this.#setConnection(epoch, connection),
    });
    this.#show(turn, conversationId);
  }

  /**
   * Show a turn until it ends.
   *
   * @param {any} turn
   * @param {string | undefined} conversationId
   */
  #show(turn, conversationId) {
    this.#turn = turn;
    if (conversationId && !this.state.conversation) this.#set({ conversation: { id: conversationId, title: "" } });
    if (conversationId) this.#remember(conversationId);
    /** @type {TurnItem} */
    const item = { kind: "turn", key: this.#newKey(), view: { ...emptyTurn(), bridgeId: turn.id } };
    this.#set({ items: [...this.state.items, item], running: item, isStarting: false });
    this.#read(turn, item, this.#epoch);
  }

  /**
   * @param {any} turn
   * @param {TurnItem} item
   * @param {number} epoch
   */
  async #read(turn, item, epoch) {
    try {
      for await (const event of turn.events()) {
        if (epoch !== this.#epoch) return;
        item.view = foldEvent(item.view, event);
        this.dispatchEvent(new CustomEvent("turn", { detail: item }));
      }
    } catch (error) {
      if (epoch === this.#epoch) this.#refuse(error);
    }
    if (epoch !== this.#epoch) return;
    this.#turn = null;
    item.isLost = !item.view.end;
    this.#set({ running: null, connection: "online" });
    const id = this.state.conversation?.id;
    if (this.#hasMissedTurn && id) return this.#reopen(id);
    const edited = this.#markUndone(item) ?? item;
    await Promise.all([this.#countEdits(edited, epoch), this.#refreshConversation(epoch)]);
  }

  /**
   * Mark the turn that an undo has taken back.
   *
   * @param {TurnItem} undo
   * @returns {TurnItem | undefined}
   */
  #markUndone({ view }) {
    if (!view.undoes) return undefined;
    const undone = this.state.items.find((item) => item.kind === "turn" && bridgeOf(item) === view.undoes);
    if (undone?.kind !== "turn") return undefined;
    const report = view.end?.report;
    if (report?.undone.length && !report.skipped.length) undone.isUndone = true;
    this.#set({});
    return undone;
  }

  /**
   * Learn how many edits of a turn can be undone.
   *
   * @param {TurnItem} item
   * @param {number} epoch
   */
  async #countEdits(item, epoch) {
    const bridgeId = bridgeOf(item);
    const isEditing = callsOf(item.view).some((call) => call.state === "ok" && (call.isInEditor || item.isStored));
    if (!bridgeId || item.view.undoes || !isEditing) return;
    try {
      const entries = await this.#client.journal(bridgeId);
      item.edits = entries.filter((/** @type {any} */ entry) => entry.state === "applied").length;
      item.isUndone ||= entries.length > 0 && entries.every((/** @type {any} */ entry) => entry.state === "undone");
    } catch (error) {
      this.dispatchEvent(new CustomEvent("note", { detail: error })); // the turn is older than its journal is kept
    }
    if (epoch === this.#epoch) this.#set({});
  }

  /**
   * Read the title and the totals that the turn has changed.
   *
   * @param {number} epoch
   */
  async #refreshConversation(epoch) {
    const id = this.state.conversation?.id;
    if (!id) return;
    try {
      const { conversation } = await this.#client.conversations.get(id, { limit: 1 });
      if (epoch !== this.#epoch) return;
      const { messages: _messages, activeTurn: _turn, ...rest } = conversation;
      this.#set({ conversation: rest });
    } catch (error) {
      if (epoch !== this.#epoch || /** @type {any} */ (error).status !== 404) return;
      this.startNewChat(); // it was deleted elsewhere
      this.#set({ problem: describeError(error) });
    }
  }

  /** Learn the label, window and capabilities of the chosen model. Nothing depends on them. */
  async #describeModel() {
    const { model, modelInfo } = this.state;
    if (!model) return;
    if (modelInfo && modelInfo.id !== model.modelId) this.#set({ modelInfo: null });
    try {
      const credentials = await this.#client.credentials.list();
      const credential = credentials.find((/** @type {any} */ each) => each.id === model.credentialId);
      if (!credential) return;
      const of = { providerId: credential.providerId, credentialId: credential.id };
      const models = await this.#client.models.list(of);
      const info = models.find((/** @type {any} */ each) => each.id === model.modelId) ?? null;
      if (this.state.model === model) this.#set({ modelInfo: info });
    } catch (error) {
      this.dispatchEvent(new CustomEvent("note", { detail: error }));
    }
  }

  /** The model of the next prompt, where it is not the conversation's already. */
  #changedModel() {
    const { model, conversation } = this.state;
    const isSame = conversation?.credentialId === model?.credentialId && conversation?.modelId === model?.modelId;
    return model && !isSame ? model : undefined;
  }

  /** @param {BroadcastChannel} channel */
  #listenToOtherTabs(channel) {
    channel.onmessage = ({ data }) => {
      const { conversation, running, isStarting } = this.state;
      if (!conversation || conversation.id !== data?.conversationId) return;
      if (running || isStarting) this.#hasMissedTurn ||= running?.view.bridgeId !== data.bridgeId;
      else this.#reopen(conversation.id);
    };
    /** @type {any} */ (channel).unref?.();
  }

  /** @param {string} id */
  async #reopen(id) {
    await this.openConversation(id).catch(() => {}); // the state says what went wrong
  }

  /** Stop showing the conversation. @returns {number} */
  #leave() {
    this.#turn?.detach();
    this.#turn = null;
    this.#epoch += 1;
    this.#hasMissedTurn = false;
    this.#set({ running: null, isStarting: false, connection: "online" });
    return this.#epoch;
  }

  /**
   * Keep which conversation is open, where the browser keeps anything: its storage may be blocked or full.
   *
   * @param {string | null} id
   */
  #remember(id) {
    try {
      if (id === null) this.#storage?.removeItem(MEMORY + this.#scope);
      else this.#storage?.setItem(MEMORY + this.#scope, id);
    } catch (error) {
      this.dispatchEvent(new CustomEvent("note", { detail: error }));
    }
  }

  #recall() {
    try {
      return this.#storage?.getItem(MEMORY + this.#scope);
    } catch (error) {
      this.dispatchEvent(new CustomEvent("note", { detail: error }));
      return null;
    }
  }

  /**
   * @param {number} epoch
   * @param {string} connection
   */
  #setConnection(epoch, connection) {
    if (epoch === this.#epoch && this.state.connection !== connection) this.#set({ connection });
  }

  /**
   * @param {string} text
   * @param {Blob[]} images
   * @returns {UserItem}
   */
  #userItem(text, images) {
    return { kind: "user", key: this.#newKey(), text, images: images.map((blob) => ({ blob })) };
  }

  #newKey() {
    this.#keys += 1;
    return `new-${this.#keys}`;
  }

  /** @param {Partial<SessionState>} change */
  #set(change) {
    this.state = { ...this.state, ...change };
    this.dispatchEvent(new Event("change"));
  }
}

/** @param {TurnItem} item */
function bridgeOf(item) {
  return item.view.bridgeId ?? item.bridgeId;
}

/**
 * Reach this scope's other tabs, where the browser lets pages do so.
 *
 * @param {string} name
 */
function openChannel(name) {
  try {
    return typeof BroadcastChannel === "function" ? new BroadcastChannel(name) : null;
  } catch {
    return null;
  }
}

/**
 * @param {any} error
 * @returns {Partial<SessionState>}
 */
function lockFromError(error) {
  const { message } = describeError(error);
  if (error.status === 401) return { lock: "signedOut", lockWords: message };
  if (error.status === 403) return { lock: "forbidden", lockWords: message };
  return { lock: "unreachable", lockWords: message };
}
