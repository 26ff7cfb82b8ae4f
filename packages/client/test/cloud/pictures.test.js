import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { collect, newClient, newEditor, scripted } from "../support/cloud.js";

test("a large picture of a result is uploaded, and the turn goes on with it", async () => {
  const data = readFileSync(process.env.FERMATA_LARGE_PNG).toString("base64");
  const posted = [];
  const fetch = (url, init) => {
    if (String(url).endsWith("/tool-result")) posted.push(JSON.parse(init.body).result);
    return globalThis.fetch(url, init);
  };
  const fermata = newClient({ fetch });
  const editor = newEditor();
  const execute = async (call) => ({ ...(await editor.execute(call)), images: [{ mimeType: "image/png", data }] });
  const executor = { ...editor, execute };
  const turn = await fermata.start({ scope: "site", prompt: scripted("read"), executor });
  const events = await collect(turn);
  assert.equal(events.at(-1).type, "done");
  assert.match(posted[0].images[0].uploadRef, /^image-/);
  assert.deepEqual(
    events.filter(({ type }) => type === "toolResult").map(({ ok }) => ok),
    [true],
  );
  assert.deepEqual(fermata.problems, []);
});
