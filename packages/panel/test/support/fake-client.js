/** A client of `@fermata/client` that a test plays. */

import { Session } from "../../src/state/session.js";

const CREDENTIAL = { id: "k1", providerId: "anthropic", displayLabel: "Key" };
export const MODEL = { id: "m1", label: "Model 1", contextWindow: 1000, capabilities: { visionInput: false } };

/** A turn whose events a test sends. */
export class FakeTurn {
  #waiting = [];
  #wake = () => {};
  constructor(id, conversationId = "conv1") {
    Object.assign(this, { id, conversationId, cancelled: 0, detached: 0 });
  }
  send(...events) {
    this.#waiting.push(...events);
    this.#wake();
  }
  async *events() {
    for (;;) {
      while (this.#waiting.length) {
        const event = this.#waiting.shift();
        if (event === "end") return;
        if (event instanceof Error) throw event;
        yield event;
      }
      await new Promise((wake) => {
        this.#wake = wake;
      });
    }
  }
  async cancel() {
    this.cancelled += 1;
  }
  detach() {
    this.detached += 1;
  }
}

export function fakeClient(changes = {}) {
  const calls = [];
  const turns = [];
  const begin =
    (how) =>
    (...args) => {
      calls.push([how, ...args]);
      const turn = new FakeTurn(`b${turns.length + 1}`);
      turns.push(turn);
      return turn;
    };
  const client = {
    calls,
    turns,
    credentials: { list: async () => [CREDENTIAL] },
    defaults: { list: async () => ({ site: { credentialId: "k1", modelId: "m1" } }) },
    models: { list: async () => [MODEL] },
    conversations: {
      get: async (id) => ({ conversation: { id, title: "A title", messages: [], contextTokens: 5 } }),
      list: async () => ({ conversations: [] }),
      create: async (body) => ({ id: "conv1", title: "", ...body }),
    },
    start: async (options) => begin("start")(options),
    follow: begin("follow"),
    undo: async (...args) => begin("undo")(...args),
    journal: async () => [],
  };
  return Object.assign(client, changes);
}

export const refused = (status, message) => Object.assign(new Error(message), { status, hint: "Do this." });
export const settled = () => new Promise((done) => setImmediate(done));

export async function loaded(client, options = {}) {
  const session = new Session({ client, scope: "site", ...options });
  await session.load();
  await settled();
  return session;
}
