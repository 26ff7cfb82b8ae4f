/** Reads a turn's events to the end, across lost connections. */

/** @import { ConnectionState, TurnEvent } from "./types.js" */
/** @import { Service } from "./service.js" */
import { isOffline, MAX_REQUEST_FAILURES, MAX_SILENT_WAIT, retryDelay, waitUntilOnline } from "./backoff.js";
import { FermataError, InvalidResponseError, TurnLostError } from "./errors.js";
import { pathOf } from "./transport.js";

/** Failures in a row, without an event between them, after which a turn is given up. */
const MAX_FOLLOW_FAILURES = 30;
const DEFAULT_HELD_POLL_SECONDS = 5;
const MAX_HELD_POLL_SECONDS = 60;
const TERMINAL = ["done", "error", "cancelled"];
const RESTING = ["paused", "held"];
export const LOG_REWOUND = "logRewound";

/**
 * The request that starts a turn. Sent again with its key, it joins the turn that it started.
 *
 * @typedef {{path: string, body: unknown, idempotencyKey: string}} StartRequest
 */

/**
 * @typedef {object} FollowerOptions
 * @property {Service} service
 * @property {AbortSignal} signal
 * @property {(event: TurnEvent) => void} onEvent Is called once for each event.
 * @property {() => void} onReconnect
 * @property {(state: ConnectionState) => void} onConnection
 * @property {StartRequest} [start]
 * @property {string} [bridgeId]
 * @property {number} [afterSeq]
 */

export class Follower {
  #options;
  #bridgeId;
  #seq;
  /** @type {TurnEvent | undefined} */
  #end;
  /** @type {TurnEvent | undefined} */
  #held;
  #connections = 0;

  /** @param {FollowerOptions} options */
  constructor(options) {
    this.#options = options;
    this.#bridgeId = options.bridgeId;
    this.#seq = options.afterSeq ?? 0;
  }

  /**
   * Follow the turn.
   *
   * @returns {Promise<TurnEvent>} The terminal event.
   */
  async run() {
    let failures = 0;
    for (;;) {
      const lastSeq = this.#seq;
      const error = await this.#readStream();
      if (this.#end) return this.#end;
      failures = this.#held || isOffline() || this.#seq > lastSeq ? 0 : failures + 1;
      if (this.#held) await this.#waitWhileHeld(this.#held);
      else if (isOffline()) await this.#waitWhileOffline();
      else if (failures > 0) await this.#waitBeforeRetry(failures, error);
    }
  }

  /**
   * Read one stream as far as it goes.
   *
   * @returns {Promise<FermataError | undefined>} What ended it, if it may pass.
   */
  async #readStream() {
    const { signal, onConnection, onReconnect } = this.#options;
    const connection = new AbortController();
    const close = () => connection.abort(signal.reason);
    const untilClosed = { signal: connection.signal };
    signal.throwIfAborted();
    signal.addEventListener("abort", close, untilClosed);
    globalThis.addEventListener?.("offline", close, untilClosed); // a dead connection would be noticed much later
    onConnection("connecting");
    this.#connections += 1;
    if (this.#connections > 1) onReconnect();
    try {
      for await (const event of this.#open(connection.signal)) {
        this.#take(event);
        if (this.#end || this.#held) return undefined;
      }
      return undefined;
    } catch (error) {
      return this.#explain(error, connection.signal);
    } finally {
      connection.abort(); // nobody listens any more
    }
  }

  /** @param {AbortSignal} signal */
  #open(signal) {
    const { service, start, onConnection } = this.#options;
    const onOpen = () => onConnection("open");
    if (this.#bridgeId === undefined && start) {
      const headers = { "idempotency-key": start.idempotencyKey };
      return service.transport.stream("POST", start.path, { body: start.body, headers, signal, onOpen });
    }
    const path = `${pathOf("bridges", /** @type {string} */ (this.#bridgeId))}/events`;
    return service.transport.stream("GET", path, { query: { after: this.#seq }, signal, onOpen });
  }

  /** @param {TurnEvent} event */
  #take(event) {
    if (event.type === "held") {
      this.#held = event; // it is of the connection, and its number is that of the last event of the turn
      this.#options.onEvent({ ...event, seq: undefined });
    }
    if (!Number.isSafeInteger(event.seq) || /** @type {number} */ (event.seq) <= this.#seq) return;
    if (event.type === "bridgeReady" && this.#bridgeId === undefined) this.#bridgeId = bridgeIdOf(event);
    this.#seq = /** @type {number} */ (event.seq);
    if (TERMINAL.includes(event.type)) this.#end = event;
    this.#options.onEvent(event);
  }

  /**
   * Return an error that may pass; throw any other one.
   *
   * @param {unknown} error
   * @param {AbortSignal} connection
   * @returns {FermataError | undefined}
   */
  #explain(error, connection) {
    this.#options.signal.throwIfAborted();
    if (connection.aborted) return undefined; // offline
    if (!(error instanceof FermataError)) throw error;
    if (error.code === LOG_REWOUND && this.#seq > 0) {
      this.#seq = 0;
      this.#options.onEvent({ type: LOG_REWOUND });
    } else if (!error.retryable) {
      throw error;
    }
    return error;
  }

  /**
   * @param {number} failures
   * @param {FermataError} [error]
   */
  async #waitBeforeRetry(failures, error) {
    const { service, signal, onConnection } = this.#options;
    const retryAfter = error?.retryAfter ?? 0;
    if (this.#bridgeId !== undefined) {
      if (failures >= MAX_FOLLOW_FAILURES) throw lost(this.#bridgeId, error);
    } else if (failures >= MAX_REQUEST_FAILURES || retryAfter > MAX_SILENT_WAIT) {
      throw error ?? lost("that was to start", error);
    }
    onConnection("waiting");
    await service.wait(retryDelay(failures, retryAfter), signal);
  }

  async #waitWhileOffline() {
    const { service, signal, onConnection } = this.#options;
    onConnection("offline");
    await waitUntilOnline(service.wait, signal);
  }

  /**
   * Ask how the turn is in place of listening, until it moves: an open connection would wait for days.
   *
   * @param {TurnEvent} held
   */
  async #waitWhileHeld(held) {
    const { service, signal, onConnection } = this.#options;
    onConnection("waiting");
    const path = pathOf("bridges", /** @type {string} */ (this.#bridgeId));
    for (;;) {
      await service.wait(pollSecondsOf(held) * 1000, signal);
      const { status, seq } = await service.persist("GET", path, { signal });
      // The turn may have moved before it is asked for the first time, and rest again: until this page answers it.
      if (seq !== this.#seq || !RESTING.includes(status)) break;
    }
    this.#held = undefined;
  }
}

/**
 * @param {string} bridgeId
 * @param {unknown} cause
 */
function lost(bridgeId, cause) {
  const reason = cause instanceof Error ? cause.message : "The stream closed before the turn ended.";
  return new TurnLostError(`The turn ${bridgeId} could not be followed. ${reason}`, { cause });
}

/** @param {TurnEvent} held */
function pollSecondsOf({ retryAfter }) {
  const isGiven = typeof retryAfter === "number" && retryAfter > 0;
  return isGiven ? Math.max(1, Math.min(retryAfter, MAX_HELD_POLL_SECONDS)) : DEFAULT_HELD_POLL_SECONDS;
}

/**
 * @param {TurnEvent} event
 * @returns {string}
 */
function bridgeIdOf({ bridgeId }) {
  if (typeof bridgeId === "string" && bridgeId) return bridgeId;
  throw new InvalidResponseError("The service has started a turn without an id.");
}
