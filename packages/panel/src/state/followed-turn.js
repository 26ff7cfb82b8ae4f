/** The turn that is followed: its events become an item of the thread. */

/** @import { SessionStore } from "./session-state.js" */
/** @import { TurnItem } from "./thread.js" */
import { callsOf, emptyTurn, foldEvent } from "./turn-view.js";

/** Events after which the browser may do something else: those of a long log arrive all at once. */
const EVENTS_AT_ONCE = 100;

export class FollowedTurn {
  #client;
  #store;
  #onEnd;
  /** @type {any} */
  #turn = null;

  /**
   * @param {any} client
   * @param {SessionStore} store
   * @param {(epoch: number) => Promise<unknown>} onEnd Is called when the turn is no longer followed.
   */
  constructor(client, store, onEnd) {
    this.#client = client;
    this.#store = store;
    this.#onEnd = onEnd;
  }

  /** Stop following; the turn goes on. */
  detach() {
    this.#turn?.detach();
    this.#turn = null;
  }

  /**
   * End a turn.
   *
   * @param {any} [turn] The followed one by default.
   */
  async cancel(turn = this.#turn) {
    const { epoch } = this.#store;
    try {
      await turn?.cancel();
    } catch (error) {
      if (epoch === this.#store.epoch) this.#store.refuse(error);
    }
  }

  /**
   * Show a turn until it ends.
   *
   * @param {any} turn
   */
  show(turn) {
    this.#turn = turn;
    /** @type {TurnItem} */
    const item = { kind: "turn", key: this.#store.newKey(), view: { ...emptyTurn(), bridgeId: turn.id } };
    this.#store.set({ items: [...this.#store.state.items, item], running: item, isStarting: false });
    this.#read(turn, item, this.#store.epoch);
  }

  /**
   * @param {any} turn
   * @param {TurnItem} item
   * @param {number} epoch
   */
  async #read(turn, item, epoch) {
    try {
      for await (const event of turn.events()) {
        if (epoch !== this.#store.epoch) return;
        item.view = foldEvent(item.view, event);
        this.#store.tellTurn(item);
        if (item.view.seq % EVENTS_AT_ONCE === 0) await nextTask();
      }
    } catch (error) {
      if (epoch === this.#store.epoch) this.#store.refuse(error);
    }
    if (epoch !== this.#store.epoch) return;
    this.#turn = null;
    item.isLost = !item.view.end;
    this.#store.set({ running: null, connection: "online" });
    const edited = this.#markUndone(item) ?? item;
    await Promise.all([this.#onEnd(epoch), this.countEdits(edited, epoch)]);
  }

  /**
   * Mark the turn that an undo has taken back.
   *
   * @param {TurnItem} undo
   * @returns {TurnItem | undefined}
   */
  #markUndone({ view }) {
    if (!view.undoes) return undefined;
    const undone = this.#store.state.items.find((item) => item.kind === "turn" && bridgeOf(item) === view.undoes);
    if (undone?.kind !== "turn") return undefined;
    const report = view.end?.report;
    if (report?.undone.length && !report.skipped.length) undone.isUndone = true;
    this.#store.set({});
    return undone;
  }

  /**
   * Learn how many edits of a turn can be undone.
   *
   * @param {TurnItem} item
   * @param {number} epoch
   */
  async countEdits(item, epoch) {
    const bridgeId = bridgeOf(item);
    const isEditing = callsOf(item.view).some((call) => call.state === "ok" && (call.isInEditor || item.isStored));
    if (!bridgeId || item.view.undoes || !isEditing) return;
    try {
      const entries = await this.#client.journal(bridgeId);
      item.edits = entries.filter((/** @type {any} */ entry) => entry.state === "applied").length;
      item.isUndone ||= entries.length > 0 && entries.every((/** @type {any} */ entry) => entry.state === "undone");
    } catch (error) {
      this.#store.note(error); // the turn is older than its journal is kept
    }
    if (epoch === this.#store.epoch) this.#store.set({});
  }
}

/** @param {TurnItem} item */
export function bridgeOf(item) {
  return item.view.bridgeId ?? item.bridgeId;
}

/** Let the browser draw, and people type. A timer would wait for a second in a hidden tab. */
function nextTask() {
  return new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      done(undefined);
    };
    port2.postMessage(null);
  });
}
