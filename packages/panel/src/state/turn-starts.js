/** Starts turns: prompts and undos. */

/** @import { FollowedTurn } from "./followed-turn.js" */
/** @import { ModelChoices } from "./model-choices.js" */
/** @import { OpenConversation } from "./open-conversation.js" */
/** @import { OtherTabs } from "./other-tabs.js" */
/** @import { SessionStore } from "./session-state.js" */
/** @import { TurnItem, UserItem } from "./thread.js" */
import { bridgeOf } from "./followed-turn.js";

/**
 * @typedef {object} StartParts
 * @property {any} client
 * @property {SessionStore} store
 * @property {string} scope
 * @property {OpenConversation} conversation
 * @property {FollowedTurn} followed
 * @property {ModelChoices} models
 * @property {OtherTabs} tabs
 * @property {(epoch: number) => Record<string, any>} followOptions
 */

export class TurnStarts {
  #parts;
  /** The person has stopped a turn that the service has not started yet. */
  #isUnwanted = false;
  /** The start that was given up, and may have started a turn all the same. @type {{what: unknown[], key: string} | null} */
  #doubtful = null;
  #isRepeated = false;

  /** @param {StartParts} parts */
  constructor(parts) {
    this.#parts = parts;
  }

  /**
   * Ask.
   *
   * @param {string} prompt
   * @param {Blob[]} images
   * @returns {Promise<boolean>}
   */
  async send(prompt, images) {
    const { client, store, scope, conversation, models, followOptions } = this.#parts;
    const { epoch } = store;
    const user = this.#userItem(prompt, images);
    store.set({ items: [...store.state.items, user] });
    const start = async () => {
      const conversationId = await conversation.idFor(epoch);
      const words = { scope, prompt, images, conversationId, model: models.changed() };
      const what = [conversationId, prompt, ...images];
      return this.#start(what, (again) => client.start({ ...words, ...followOptions(epoch), ...again }));
    };
    if (await this.#begin(epoch, start)) return true;
    store.set({ items: store.state.items.filter((item) => item !== user) });
    return this.#wasAsked(prompt);
  }

  /**
   * Take back the edits of a turn.
   *
   * @param {TurnItem} item
   */
  async undo(item) {
    const { client, store, followOptions } = this.#parts;
    const bridgeId = bridgeOf(item);
    const { epoch } = store;
    const undo = (/** @type {any} */ again) => client.undo(bridgeId, { ...followOptions(epoch), ...again });
    await this.#begin(epoch, () => this.#start(["undo", bridgeId], undo));
  }

  /** End the running turn, also one that is only about to start. */
  async stop() {
    this.#isUnwanted = this.#parts.store.state.isStarting;
    await this.#parts.followed.cancel();
  }

  /**
   * Start a turn. What was given up, and is asked once more, joins the turn that it may have started.
   *
   * @param {unknown[]} what Names it: the same parts are the same start.
   * @param {(again: {idempotencyKey?: string}) => Promise<any>} start
   */
  async #start(what, start) {
    const doubtful = this.#doubtful;
    const isSame = doubtful?.what.length === what.length && doubtful.what.every((part, at) => part === what[at]);
    this.#doubtful = null;
    this.#isRepeated = isSame;
    try {
      return await start(isSame ? { idempotencyKey: doubtful.key } : {});
    } catch (error) {
      const given = /** @type {any} */ (error)?.idempotencyKey;
      if (given) this.#doubtful = { what, key: given };
      throw error;
    }
  }

  /**
   * Find out whether a prompt that was refused when it was repeated had been asked before: the document has changed since,
   * so that the service takes it for another one.
   *
   * @param {string} prompt
   */
  #wasAsked(prompt) {
    const { store } = this.#parts;
    const last = store.state.items.findLast((item) => item.kind === "user");
    if (!this.#isRepeated || last?.kind !== "user" || last.text.trim() !== prompt.trim()) return false;
    store.set({ problem: null });
    return true;
  }

  /**
   * Begin a turn, and show it. If the panel shows something else by now, the turn goes on as one that was left.
   *
   * @param {number} epoch When it was asked for.
   * @param {() => Promise<any>} start
   * @returns {Promise<boolean>} Whether it has started.
   */
  async #begin(epoch, start) {
    const { store, conversation } = this.#parts;
    const askedIn = store.state.conversation?.id;
    this.#isUnwanted = false;
    store.set({ isStarting: true, problem: null });
    try {
      this.#show(await start(), askedIn, epoch);
      return true;
    } catch (error) {
      if (epoch !== store.epoch) return false;
      store.set({ isStarting: false });
      store.refuse(error);
      await conversation.lookAgain(/** @type {any} */ (error), epoch);
      return false;
    }
  }

  /**
   * @param {any} turn
   * @param {string | undefined} askedIn
   * @param {number} epoch
   */
  #show(turn, askedIn, epoch) {
    const { store, followed, tabs } = this.#parts;
    tabs.tell({ conversationId: turn.conversationId ?? askedIn, bridgeId: turn.id });
    if (epoch !== store.epoch) return turn.detach();
    followed.show(turn);
    if (this.#isUnwanted) followed.cancel(turn);
  }

  /**
   * @param {string} text
   * @param {Blob[]} images
   * @returns {UserItem}
   */
  #userItem(text, images) {
    return { kind: "user", key: this.#parts.store.newKey(), text, images: images.map((blob) => ({ blob })) };
  }
}
