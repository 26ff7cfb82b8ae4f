import { Fermata } from "@fermata/client";
import fermata, { createExecutor, type GrapesExecutor } from "grapesjs-fermata";

/** The part of an editor that this file uses; `grapesjs` itself is no dependency of the plugin. */
interface Editor {
  runCommand(id: string, options?: object): unknown;
}

export async function run(editor: Editor): Promise<string> {
  const client = new Fermata({ baseUrl: "https://agent.example.com" });
  fermata(editor, { client, scope: "site", panel: false, runScripts: false, undoSteps: 100 });
  const executor: GrapesExecutor = createExecutor(editor, { runScripts: false });
  const output = await executor.execute({ toolName: "read_document", input: {} });
  const turn = await client.start({ scope: "site", prompt: "Hello", executor });
  const report = await executor.undoTurn(turn.id);
  return `${output.ok} ${output.revision} ${report.undone.length}`;
}

/** What must not type-check. It is never called. */
export function misuse(editor: Editor): void {
  // @ts-expect-error the undo keeps a number of steps
  fermata(editor, { undoSteps: "many" });
  // @ts-expect-error a request names its tool
  createExecutor(editor).execute({});
}
