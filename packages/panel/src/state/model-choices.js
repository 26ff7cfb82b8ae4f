/** Which model answers, and what is known of it. */

/** @import { ModelChoice, SessionStore } from "./session-state.js" */
/** @import { Problem } from "./session-state.js" */
import { describeError } from "./problems.js";

export class ModelChoices {
  #client;
  #store;

  /**
   * @param {any} client
   * @param {SessionStore} store
   */
  constructor(client, store) {
    this.#client = client;
    this.#store = store;
  }

  /**
   * The models that the caller's credentials open. A credential whose provider does not answer has no models and a
   * `problem`.
   *
   * @returns {Promise<{credential: Record<string, any>, models: Record<string, any>[], problem?: Problem}[]>}
   */
  async list() {
    const credentials = await this.#client.credentials.list();
    const list = async (/** @type {any} */ credential) => {
      try {
        const { providerId, id } = credential;
        return { credential, models: await this.#client.models.list({ providerId, credentialId: id }) };
      } catch (error) {
        return { credential, models: [], problem: describeError(error) };
      }
    };
    return Promise.all(credentials.map(list));
  }

  /**
   * @param {ModelChoice} model
   * @param {Record<string, any>} [info]
   */
  choose(model, info) {
    const { lock } = this.#store.state;
    this.#store.set({ model, modelInfo: info ?? null, lock: lock === "chooseModel" ? null : lock, problem: null });
    if (!info) this.describe();
  }

  /** Learn the label, window and capabilities of the chosen model. Nothing depends on them. */
  async describe() {
    const { model, modelInfo } = this.#store.state;
    if (!model) return;
    if (modelInfo && modelInfo.id !== model.modelId) this.#store.set({ modelInfo: null });
    try {
      const credentials = await this.#client.credentials.list();
      const credential = credentials.find((/** @type {any} */ each) => each.id === model.credentialId);
      if (!credential) return;
      const of = { providerId: credential.providerId, credentialId: credential.id };
      const models = await this.#client.models.list(of);
      const info = models.find((/** @type {any} */ each) => each.id === model.modelId) ?? null;
      if (this.#store.state.model === model) this.#store.set({ modelInfo: info });
    } catch (error) {
      this.#store.note(error);
    }
  }

  /** The model of the next prompt, where it is not the conversation's already. */
  changed() {
    const { model, conversation } = this.#store.state;
    const isSame = conversation?.credentialId === model?.credentialId && conversation?.modelId === model?.modelId;
    return model && !isSame ? model : undefined;
  }
}
