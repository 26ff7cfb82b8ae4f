/** Carries out the tool requests of one turn, each effect once, one after another. */

/** @import { Executor, ToolOutput, TurnEvent } from "./types.js" */
/** @import { Service } from "./service.js" */
import { FermataError } from "./errors.js";
import { FallbackReceipts } from "./fallback-receipts.js";
import { canonicalJson, checkSchema, listErrors } from "./schema.js";
import { pathOf } from "./transport.js";

/** Milliseconds until what could not be answered is tried again. */
const RETRY_DELAY = 5000;
/** A request can be repeated for as long as its turn waits for it, which is far less. */
const MAX_RECEIPT_AGE = 2 * 24 * 3600 * 1000;
/**
 * Tools that are in no list of a scope: the call that takes an edit back is never offered to a model, and fields of a page
 * only to agents that were told of some.
 *
 * @type {Record<string, Pick<import("./service.js").Tool, "capability" | "inputSchema">>}
 */
const UNLISTED_TOOLS = {
  restore: { capability: "write", inputSchema: schemaOf("patch") },
  "update-page-state": { capability: "read", inputSchema: schemaOf("updates") },
};
const NOT_BEGUN = "The turn ended before the editor began.";
const UNKNOWN_OUTCOME =
  "The editor was closed while it carried out this call, so its outcome is unknown. Read the document before you repeat it.";

/**
 * @typedef {object} DispatcherOptions
 * @property {Service} service
 * @property {Executor} executor
 * @property {string} bridgeId
 * @property {string} [scope] Found out when it is missing.
 * @property {boolean} isDoubtful Whether requests may have been answered before.
 */

export class ToolDispatcher {
  #service;
  #executor;
  #bridgeId;
  #scope;
  #isDoubtful;
  #isHolder = false;
  /** Requests that were seen, and not their results. @type {Map<string, TurnEvent>} */
  #open = new Map();
  /** @type {Set<string>} */
  #handled = new Set();
  /** The number of the last event about whose request the service was asked. */
  #decidedSeq = 0;
  #queue = Promise.resolve();
  #over = new AbortController();
  #receipts;

  /** @param {DispatcherOptions} options */
  constructor({ service, executor, bridgeId, scope, isDoubtful }) {
    this.#service = service;
    this.#executor = executor;
    this.#bridgeId = bridgeId;
    this.#scope = scope;
    this.#isDoubtful = isDoubtful;
    this.#receipts = new FallbackReceipts(service.receipts, service.report);
  }

  /**
   * Take an event of the turn.
   *
   * @param {TurnEvent} event
   */
  take(event) {
    if (event.type === "toolRequest") this.#takeRequest(event);
    if (event.type === "toolResult") this.#forget(event.toolCallId);
  }

  /** Ask the service before the next request whether it still waits: a connection was lost in between. */
  doubt() {
    this.#isDoubtful = true;
  }

  /** Forget what was seen: the log was rewound. */
  startAgain() {
    this.#open = new Map();
    this.#handled = new Set();
    this.#decidedSeq = 0;
    this.#isDoubtful = true;
  }

  /** Begin to execute: the lease is ours. */
  hold() {
    this.#isHolder = true;
    if (this.#isDoubtful || this.#open.size > 0) {
      this.#isDoubtful = true;
      this.#enqueue(() => this.#carryOutOpen());
    }
  }

  /**
   * End. What is being carried out is told by its signal.
   *
   * @param {unknown} reason
   * @param {boolean} isTurnOver Whether the receipts of the turn are needed no more.
   */
  async end(reason, isTurnOver) {
    this.#over.abort(reason);
    await this.#queue;
    if (isTurnOver) await this.#receipts.clear(this.#keyOf(""), Date.now() - MAX_RECEIPT_AGE);
  }

  /** @param {TurnEvent} request */
  #takeRequest(request) {
    const isDecided = (request.seq ?? 0) <= this.#decidedSeq;
    if (isDecided || this.#handled.has(request.requestId)) return;
    this.#open.set(request.requestId, request);
    if (this.#isHolder) this.#enqueue(() => this.#carryOutOpen());
  }

  /** @param {string} toolCallId */
  #forget(toolCallId) {
    for (const [id, request] of this.#open) if (request.toolCallId === toolCallId) this.#open.delete(id);
  }

  /** @param {() => Promise<void>} job */
  #enqueue(job) {
    this.#queue = this.#queue.then(job).catch((error) => this.#giveUp(error));
  }

  /**
   * Report an error that will not pass, and throw one that may.
   *
   * @param {any} error
   */
  #giveUp(error) {
    if (this.#over.signal.aborted) return;
    if (error?.retryable) throw error;
    this.#service.report(error);
  }

  /** Carry out what is open. What cannot be answered now is tried again for as long as the turn waits for it. */
  async #carryOutOpen() {
    for (;;) {
      try {
        return await this.#carryOutEach();
      } catch (error) {
        const mayPass = /** @type {import("./errors.js").FermataError} */ (error)?.retryable;
        if (!mayPass || this.#over.signal.aborted) throw error;
        this.#isDoubtful = true;
        await this.#service.wait(RETRY_DELAY, this.#over.signal);
      }
    }
  }

  async #carryOutEach() {
    if (this.#isDoubtful) await this.#askWhatIsOpen();
    const [open, handled] = [this.#open, this.#handled]; // others take their place when the log is rewound
    for (const request of open.values()) {
      if (this.#over.signal.aborted || open !== this.#open) return;
      await this.#carryOut(request).catch((error) => this.#giveUp(error));
      handled.add(request.requestId);
      open.delete(request.requestId);
    }
  }

  /** Ask the service which requests wait for an answer. */
  async #askWhatIsOpen() {
    const path = pathOf("bridges", this.#bridgeId);
    const bridge = await this.#service.persist("GET", path, { signal: this.#over.signal });
    this.#isDoubtful = false;
    this.#decidedSeq = bridge.seq;
    for (const [id, request] of this.#open) if ((request.seq ?? 0) <= bridge.seq) this.#open.delete(id);
    for (const request of bridge.pending ?? []) {
      if (!this.#handled.has(request.requestId)) this.#open.set(request.requestId, request);
    }
  }

  /** @param {TurnEvent} request */
  async #carryOut(request) {
    const result = await this.#resultFor(request).catch((error) => this.#failed(request, error));
    if (this.#over.signal.aborted) return;
    const state = await this.#readEditor();
    const answer = { bridgeId: this.#bridgeId, requestId: request.requestId, result, ...state };
    await this.#service.answer(answer, this.#over.signal);
  }

  /**
   * Return the result of a request: what its receipt says, or what the executor does now.
   *
   * @param {TurnEvent} request
   * @returns {Promise<ToolOutput>}
   */
  async #resultFor(request) {
    const key = this.#keyOf(request.effectKey ?? request.requestId);
    // The key alone is not enough: after the log was rewound, another call may have the same one.
    const call = fingerprint(canonicalJson([request.toolName, request.input]));
    const receipt = await this.#receipts.get(key);
    const wasBegun = receipt?.call === call;
    if (wasBegun && receipt.result) return receipt.result;
    const tool = await this.#findTool(request.toolName);
    if (wasBegun && tool?.capability !== "read") return { ok: false, error: UNKNOWN_OUTCOME };
    const refusal = this.#refuse(request, tool);
    if (refusal) return { ok: false, error: refusal };
    if (this.#over.signal.aborted) return { ok: false, error: NOT_BEGUN };
    await this.#receipts.set(key, { call, at: Date.now() });
    const result = await this.#execute(request);
    if (!result.ok && this.#over.signal.aborted) return result; // it was interrupted: how far it came is unknown
    await this.#receipts.set(key, { call, at: Date.now(), result });
    return result;
  }

  /**
   * Return the result of a request that could not even be looked at, such as one whose input is nested too deeply. Otherwise
   * nobody would answer it.
   *
   * @param {TurnEvent} request
   * @param {any} error
   * @returns {ToolOutput}
   */
  #failed({ toolName }, error) {
    if (error instanceof FermataError || this.#over.signal.aborted) throw error;
    this.#service.report(error);
    return { ok: false, error: `${toolName} failed in the editor: ${error?.message ?? error}` };
  }

  /** @param {string} name */
  async #findTool(name) {
    if (Object.hasOwn(UNLISTED_TOOLS, name)) return UNLISTED_TOOLS[name];
    this.#scope ??= await this.#service.scopeOf(this.#bridgeId);
    return (await this.#service.toolsOf(this.#scope)).get(name);
  }

  /**
   * Say why a request is not carried out, if it is not.
   *
   * @param {TurnEvent} request
   * @param {{inputSchema: import("./schema.js").Schema} | undefined} tool
   * @returns {string | undefined}
   */
  #refuse({ toolName, input }, tool) {
    const { tools } = this.#executor;
    if (tools && !tools.includes(toolName)) return `This editor cannot carry out ${toolName}.`;
    if (!tool) return `${toolName} is no tool of this scope.`;
    try {
      checkSchema(tool.inputSchema);
    } catch (error) {
      this.#service.report(/** @type {Error} */ (error));
      return `This editor cannot check the input of ${toolName}.`;
    }
    const errors = listErrors(tool.inputSchema, input);
    return errors.length > 0 ? errors.join("; ") : undefined;
  }

  /**
   * @param {TurnEvent} request
   * @returns {Promise<ToolOutput>}
   */
  async #execute(request) {
    const { toolName, input, revision, undoes } = request;
    const effectKey = request.effectKey ?? request.requestId;
    try {
      const call = { toolName, input, effectKey, revision, undoes, signal: this.#over.signal, request };
      const result = await this.#executor.execute(call);
      if (typeof result?.ok === "boolean") return result;
      throw new TypeError("its executor returned no result");
    } catch (error) {
      if (!this.#over.signal.aborted) this.#service.report(/** @type {Error} */ (error));
      return {
        ok: false,
        error: `${toolName} failed in the editor: ${/** @type {Error} */ (error)?.message ?? error}`,
      };
    }
  }

  async #readEditor() {
    try {
      const { snapshot, revision } = (await this.#executor.snapshot?.()) ?? {};
      return { snapshot, revision };
    } catch (error) {
      this.#service.report(/** @type {Error} */ (error));
      return {};
    }
  }

  /** @param {string} effectKey */
  #keyOf(effectKey) {
    return `${this.#bridgeId} ${effectKey}`;
  }
}

/**
 * Return the schema of an input with one member, which is an object.
 *
 * @param {string} name
 */
function schemaOf(name) {
  return { type: "object", properties: { [name]: { type: "object" } }, required: [name] };
}

/**
 * Reduce a text to a short one that differs for different texts (53 bits of cyrb53, and the length).
 *
 * @param {string} text
 */
function fingerprint(text) {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  return `${(high >>> 0).toString(36)}-${(low >>> 0).toString(36)}-${text.length}`;
}
