import { type Executor, Fermata, FermataError, memoryReceipts, RateLimitError, type TurnEvent } from "@fermata/client";
import { ContentClient } from "@fermata/client/content";
import { uploadingFetch } from "@fermata/client/uploading-fetch";

const executor: Executor = {
  tools: ["insertHtml"],
  execute: async ({ toolName, input, signal }) => {
    signal.throwIfAborted();
    return { ok: true, data: { toolName, html: input.html }, revision: "r2" };
  },
  snapshot: () => ({ snapshot: {}, revision: "r1" }),
};

export async function run(): Promise<string> {
  const fermata = new Fermata({
    baseUrl: "https://agent.example.com",
    token: async ({ refresh }) => (refresh ? "new" : "old"),
    fetch: uploadingFetch(),
    receipts: memoryReceipts(),
  });
  try {
    const turn = await fermata.start({ scope: "site", prompt: "Hello", executor, model: "m" });
    const events: TurnEvent[] = [];
    for await (const event of turn.events()) events.push(event);
    const undo = await turn.undo({ through: (await turn.journal())[0]?.effectKey });
    const { conversations, nextCursor } = await fermata.conversations.list({ scope: "site", limit: 5 });
    return `${turn.id} ${undo.id} ${conversations.length} ${nextCursor?.length ?? 0}`;
  } catch (error) {
    if (error instanceof RateLimitError) return `wait ${error.retryAfter} ms`;
    if (error instanceof FermataError) return `${error.status} ${error.hint}`;
    throw error;
  }
}

/** What must not type-check. It is never called. */
export function misuse(fermata: Fermata): void {
  // @ts-expect-error a scope is a text
  fermata.start({ scope: 1 });
  // @ts-expect-error an executor executes
  fermata.follow("b1", { executor: {} });
  // @ts-expect-error there is no such scope
  fermata.conversations.list({ scope: "kitchen" });
}

export async function listTitles(site: string): Promise<string[]> {
  const { documents } = new ContentClient({ baseUrl: "https://agent.example.com" }).space(site);
  const page = await documents.list("post", { limit: 5, status: "published" });
  return page.documents.map((document) => String(document.title));
}
