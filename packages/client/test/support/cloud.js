/**
 * The local cloud that the tests run against, as tests/packages/test_client_on_cloud.py has started it.
 *
 *     const fermata = newClient();
 *     const turn = await fermata.start({ scope: "site", prompt: scripted("insert"), executor: newEditor() });
 */
import { connect, createServer } from "node:net";
import { Fermata, memoryReceipts } from "@fermata/client";

export const URL_OF_CLOUD = process.env.FERMATA_URL;
export const TOKEN = process.env.FERMATA_TOKEN;
/** A token of the same user that may chat, and nothing else. */
export const CHAT_TOKEN = process.env.FERMATA_CHAT_TOKEN;

/** A prompt that the demo model answers by the script of this name. */
export function scripted(name) {
  return `Please. ${JSON.parse(process.env.FERMATA_SCRIPTS)[name]}`;
}

export function newClient(options = {}) {
  const problems = [];
  const given = { baseUrl: URL_OF_CLOUD, token: async () => TOKEN, receipts: memoryReceipts() };
  const fermata = new Fermata({ ...given, onProblem: (problem) => problems.push(problem), ...options });
  return Object.assign(fermata, { problems });
}

/** An editor whose document is a list of pieces of HTML, and whose revision is that list. */
export function newEditor(pieces = []) {
  const calls = [];
  const revision = () => `r${JSON.stringify(pieces).slice(0, 150)}`;
  return {
    pieces,
    calls,
    snapshot: () => ({ snapshot: { page: { id: "p", title: "P", rootNodeId: "root" } }, revision: revision() }),
    async execute({ toolName, input, effectKey }) {
      calls.push(effectKey);
      const before = [...pieces];
      if (toolName === "read_document")
        return { ok: true, data: { html: `<main uid="root">${pieces.join("")}</main>` }, revision: revision() };
      if (toolName === "restore") pieces.splice(0, pieces.length, ...input.patch.pieces);
      else pieces.push(input.html ?? input.css);
      const inverse = { tool: "restore", input: { patch: { pieces: before } } };
      return { ok: true, data: { nodeIds: [`n${pieces.length}`] }, revision: revision(), inverse };
    },
  };
}

/** A proxy before the cloud whose connections break: `cut()` breaks those that are open, and a stream breaks after so many bytes. */
export async function openProxy(t, { bytesPerStream = Number.POSITIVE_INFINITY } = {}) {
  const { hostname, port } = new URL(URL_OF_CLOUD);
  const open = new Set();
  let count = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    let left = Number.POSITIVE_INFINITY;
    count += 1;
    open.add(client);
    const cut = () => {
      client.destroy();
      upstream.destroy();
      open.delete(client);
    };
    client
      .on("error", cut)
      .on("close", cut)
      .on("data", (bytes) => {
        if (/^(POST \S+\/chat\/|GET \S+\/events)/.test(bytes.toString("latin1"))) left = bytesPerStream;
        upstream.write(bytes);
      });
    upstream.on("error", cut).on("close", cut);
    upstream.on("data", (bytes) => {
      client.write(bytes.subarray(0, left));
      left -= bytes.length;
      if (left <= 0) setImmediate(cut);
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  t.after(() => {
    server.close();
    for (const client of open) client.destroy();
  });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut: () => {
      for (const client of open) client.destroy();
    },
    get count() {
      return count;
    },
  };
}

export async function collect(turn) {
  const events = [];
  for await (const event of turn.events()) events.push(event);
  return events;
}
