/** One turn: its events, its end, and what can be done with it. */

/** @import { CallOptions, ConnectionState, Executor, FollowOptions, TurnEvent, UndoOptions } from "./types.js" */
/** @import { Fermata } from "./fermata.js" */
/** @import { Service } from "./service.js" */
/** @import { StartRequest } from "./follower.js" */
import { Follower, LOG_REWOUND } from "./follower.js";
import { withLease } from "./lease.js";
import { ToolDispatcher } from "./tool-dispatcher.js";

/**
 * @typedef {object} TurnMembers
 * @property {Fermata} fermata
 * @property {Service} service
 * @property {StartRequest} [start]
 * @property {string} [bridgeId]
 * @property {number} [afterSeq]
 * @property {string} [conversationId]
 * @property {string} [scope]
 * @property {boolean} isDoubtful Whether the turn may have run before, so that its requests may have been answered.
 */

/** A turn that is followed to its end, whether or not somebody reads `events()`. */
export class Turn {
  #fermata;
  #options;
  #members;
  /** @type {TurnEvent[]} */
  #events = [];
  /** Where the log begins in `#events`: it begins again when it was rewound. */
  #first = 0;
  #isOver = false;
  #changed = signalOnce();
  #following = new AbortController();
  /** @type {ToolDispatcher | undefined} */
  #dispatcher;
  #ready = signalOnce();

  /** The id of the turn's bridge. */
  id = "";
  /** The conversation, where it is known. @type {string | undefined} */
  conversationId;
  /** How the connection is. @type {ConnectionState} */
  connection = "connecting";
  /** The terminal event: `done`, `error` or `cancelled`. It rejects when the turn cannot be followed to it. */
  result;

  /**
   * @param {TurnMembers} members
   * @param {FollowOptions} options
   */
  constructor(members, options) {
    this.#fermata = members.fermata;
    this.#members = members;
    this.#options = options;
    this.conversationId = members.conversationId;
    if (members.bridgeId !== undefined) this.#begin(members.bridgeId);
    this.result = this.#follow();
    this.result.catch(() => {}); // whoever reads the events is told as well
  }

  /**
   * Wait until the turn has started.
   *
   * @returns {Promise<this>}
   */
  async started() {
    await Promise.race([this.#ready.promise, this.result]);
    return this;
  }

  /**
   * Read the events, each once, from the first one that was followed, and those to come. Any number of readers may. An event
   * `logRewound` says that all events before it are void.
   *
   * @returns {AsyncGenerator<TurnEvent, void, void>}
   */
  async *events() {
    for (let index = this.#first; ; ) {
      for (; index < this.#events.length; index += 1) yield this.#events[index];
      if (this.#isOver) break;
      await this.#changed.promise;
    }
    await this.result;
  }

  /**
   * End the turn. One that has ended stays as it is.
   *
   * @param {CallOptions} [options]
   */
  async cancel(options) {
    return this.#fermata.cancel(this.id, options);
  }

  /**
   * List the edits of the turn.
   *
   * @param {CallOptions} [options]
   */
  async journal(options) {
    return this.#fermata.journal(this.id, options);
  }

  /**
   * Undo the edits of the turn, the newest first: a turn of its own, with a `report` in its end.
   *
   * @param {UndoOptions} [options] The executor is this turn's, where none is given.
   */
  async undo(options = {}) {
    return this.#fermata.undo(this.id, { executor: this.#options.executor, ...options });
  }

  /** Stop following. The turn itself goes on. */
  detach() {
    this.#following.abort(new DOMException("The turn is no longer followed.", "AbortError"));
  }

  async #follow() {
    const { signal } = this.#options;
    const abort = () => this.#following.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { signal: this.#following.signal });
    if (signal?.aborted) abort();
    const { service, start, bridgeId, afterSeq } = this.#members;
    const follower = new Follower({
      service,
      start,
      bridgeId,
      afterSeq,
      signal: this.#following.signal,
      onEvent: (event) => this.#take(event),
      onReconnect: () => this.#dispatcher?.doubt(),
      onConnection: (state) => this.#tell(state),
    });
    try {
      const end = await follower.run();
      this.#following.abort(new DOMException("The turn has ended.", "AbortError"));
      this.#dispatcher?.end(this.#following.signal.reason, true);
      return end;
    } finally {
      this.#following.abort();
      this.#dispatcher?.end(this.#following.signal.reason, false);
      this.#isOver = true;
      this.#tell("closed");
      this.#wake();
    }
  }

  /** @param {TurnEvent} event */
  #take(event) {
    if (event.type === "bridgeReady" && !this.id) this.#begin(event.bridgeId);
    if (event.type === LOG_REWOUND) {
      this.#first = this.#events.length;
      this.#dispatcher?.startAgain();
    }
    this.#events.push(event);
    this.#dispatcher?.take(event);
    this.#wake();
  }

  /** @param {string} bridgeId */
  #begin(bridgeId) {
    this.id = bridgeId;
    const { executor, lease = bridgeId } = this.#options;
    if (executor) this.#execute(executor, lease);
    this.#ready.resolve();
  }

  /**
   * Execute the turn's requests as soon as no other tab does.
   *
   * @param {Executor} executor
   * @param {string} lease
   */
  #execute(executor, lease) {
    const { service, scope, isDoubtful } = this.#members;
    const dispatcher = new ToolDispatcher({ service, executor, bridgeId: this.id, scope, isDoubtful });
    this.#dispatcher = dispatcher;
    const { signal } = this.#following;
    const untilOver = async () => {
      dispatcher.hold();
      await aborted(signal);
      await dispatcher.end(signal.reason, false);
    };
    withLease(lease, signal, untilOver).catch(service.report);
  }

  #wake() {
    this.#changed.resolve();
    this.#changed = signalOnce();
  }

  /** @param {ConnectionState} state */
  #tell(state) {
    if (state === this.connection) return;
    this.connection = state;
    try {
      this.#options.onConnection?.(state);
    } catch (error) {
      this.#members.service.report(/** @type {Error} */ (error)); // whoever is told disturbs nothing
    }
  }
}

/** @param {AbortSignal} signal */
function aborted(signal) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", resolve, { once: true });
  });
}

/** @returns {{promise: Promise<void>, resolve: () => void}} */
function signalOnce() {
  /** @type {() => void} */
  let resolve = () => {};
  const promise = new Promise((/** @type {(value: void) => void} */ done) => {
    resolve = () => done();
  });
  return { promise, resolve };
}
