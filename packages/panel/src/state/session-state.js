/** What a session knows, and where its parts keep it. */

/** @import { ThreadItem, TurnItem } from "./thread.js" */
import { describeError } from "./problems.js";

/** @typedef {{credentialId: string, modelId: string}} ModelChoice */

/** @typedef {null | "setup" | "chooseModel" | "signedOut" | "forbidden" | "unreachable"} Lock Why nothing can be asked. */

/**
 * @typedef {object} Problem
 * @property {string} message The service's own words.
 * @property {string} hint What to do, in the client's words.
 * @property {boolean} canRetry
 * @property {string} code Names what happened, for words in the reader's language; may be empty.
 * @property {number} status The HTTP status; 0 without one.
 */

/**
 * @typedef {object} SessionState
 * @property {boolean} isLoading
 * @property {Lock} lock
 * @property {Problem | null} lockProblem What has locked the panel, where it was an answer of the service.
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

/** @returns {SessionState} */
function initialState() {
  return {
    isLoading: true,
    lock: null,
    lockProblem: null,
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
}

/** The state that the parts of a session share. Each change is told to whoever listens to the session. */
export class SessionStore {
  state = initialState();
  /** Rises whenever another conversation is shown, so that late answers about the one before are dropped. */
  epoch = 0;
  isClosed = false;
  #target;
  #keys = 0;

  /** @param {EventTarget} target Gets the events `change`, `turn` and `note`. */
  constructor(target) {
    this.#target = target;
  }

  /** @param {Partial<SessionState>} change */
  set(change) {
    this.state = { ...this.state, ...change };
    this.#target.dispatchEvent(new Event("change"));
  }

  /** Tell that an event has changed a turn. @param {TurnItem} item */
  tellTurn(item) {
    this.#target.dispatchEvent(new CustomEvent("turn", { detail: item }));
  }

  /** Tell what went wrong, and needs nobody's attention. @param {unknown} error */
  note(error) {
    this.#target.dispatchEvent(new CustomEvent("note", { detail: error }));
  }

  /**
   * Say that a request was refused. Who is signed out is told how to go on.
   *
   * @param {any} error
   */
  refuse(error) {
    if (error?.status === 401) this.set(lockFromError(error));
    else this.set({ problem: describeError(error) });
  }

  /** @returns {string} A key that no item of the thread has. */
  newKey() {
    this.#keys += 1;
    return `new-${this.#keys}`;
  }
}

/**
 * @param {any} error
 * @returns {Partial<SessionState>}
 */
export function lockFromError(error) {
  const lockProblem = describeError(error);
  if (error?.status === 401) return { lock: "signedOut", lockProblem };
  if (error?.status === 403) return { lock: "forbidden", lockProblem };
  return { lock: "unreachable", lockProblem };
}
