/** Ask the service for turns, and carry out in the editor what the model asks for. */

import { refuse } from "./tool-error.js";

/** @typedef {import("./executor.js").GrapesExecutor} GrapesExecutor */

/** Asks the service, and carries out in the editor what the model asks for. */
export class Assistant {
  /**
   * @param {any} editor
   * @param {GrapesExecutor} executor
   * @param {{client?: any, scope?: string, extendExecutor?: (executor: GrapesExecutor) => any}} options
   */
  constructor(editor, executor, { client, scope = "site", extendExecutor }) {
    this.editor = editor;
    this.executor = executor;
    this.turnExecutor = extendExecutor ? extendExecutor(executor) : executor;
    this.scope = scope;
    this.givenClient = client;
    /** @type {Promise<any> | undefined} */
    this.madeClient = undefined;
  }

  /**
   * Return the client: the host's own, or one that is made of its options.
   * @returns {Promise<any>}
   */
  client() {
    this.madeClient ??= this.#makeClient();
    return this.madeClient;
  }

  /**
   * Start a turn.
   * @param {{prompt?: string, [option: string]: any}} options those of `Fermata.start`
   * @returns {Promise<any>} the turn
   */
  async ask(options) {
    const client = await this.client();
    const turn = await client.start({ scope: this.scope, executor: this.turnExecutor, ...options });
    this.editor.trigger("fermata:turn", { turn });
    return turn;
  }

  async #makeClient() {
    if (typeof this.givenClient?.start === "function") return this.givenClient;
    if (!this.givenClient) refuse("The plugin was given no client: set `client` in its options.");
    const { Fermata } = await import("@fermata/client");
    return new Fermata(this.givenClient);
  }
}
