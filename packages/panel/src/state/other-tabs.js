/** Tells the other tabs of an origin which turn has begun, and hears of theirs. */
export class OtherTabs {
  /** @type {BroadcastChannel | null} */
  #channel;

  /**
   * @param {string} name
   * @param {(begun: {conversationId?: string, bridgeId?: string}) => void} onTurn
   */
  constructor(name, onTurn) {
    this.#channel = openChannel(name);
    if (!this.#channel) return;
    this.#channel.onmessage = ({ data }) => onTurn(data ?? {});
    /** @type {any} */ (this.#channel).unref?.();
  }

  /** @param {{conversationId?: string, bridgeId: string}} begun */
  tell(begun) {
    this.#channel?.postMessage(begun);
  }

  close() {
    this.#channel?.close();
    this.#channel = null;
  }
}

/**
 * Open a channel, where the browser lets pages do so.
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
