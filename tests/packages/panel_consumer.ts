import { Fermata } from "@fermata/client";
import { type FermataPanel, MESSAGES, messagesFor, Session } from "@fermata/panel";
import { adoptTokens } from "@fermata/panel/tokens";

export function run(): FermataPanel {
  adoptTokens();
  const panel = document.querySelector("fermata-panel") ?? document.createElement("fermata-panel");
  panel.client = new Fermata({ baseUrl: "https://agent.example.com" });
  panel.messages = { ...messagesFor("de"), panel: MESSAGES.en.panel };
  panel.conversationId = "conv";
  return panel;
}

export async function runWithoutView(): Promise<boolean> {
  const session = new Session({ client: new Fermata(), scope: "site" });
  await session.load();
  return session.send("Hello");
}

/** What must not type-check. It is never called. */
export function misuse(panel: FermataPanel): void {
  // @ts-expect-error a word is a text
  panel.messages = { panel: 1 };
  // @ts-expect-error a scope is a text
  panel.scope = 1;
}
