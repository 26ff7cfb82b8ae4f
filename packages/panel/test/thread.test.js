import assert from "node:assert/strict";
import { test } from "node:test";
import { itemsFromMessages } from "../src/state/thread.js";

const line = (role, content, more = {}) => ({ id: "t1-0", role, content, ...more });
const text = (words) => ({ kind: "text", text: words });

test("a prompt and its answer are two items", () => {
  const items = itemsFromMessages([line("user", [text("Add it.")]), line("assistant", [text("Done.")])]);
  assert.deepEqual(
    items.map((item) => item.kind),
    ["user", "turn"],
  );
  assert.equal(items[1].view.rounds[0].text, "Done.");
  assert.equal(items[1].bridgeId, "t1");
});

test("a call gets the result that follows it", () => {
  const items = itemsFromMessages([
    line("user", [text("Add it.")]),
    line("assistant", [{ kind: "toolCall", toolCallId: "c1", toolName: "insertHtml", input: {} }]),
    line("tool", [{ kind: "toolResult", ok: false, error: "No." }], { toolCallId: "c1" }),
    line("assistant", [text("It failed.")]),
  ]);
  const [first, second] = items[1].view.rounds;
  assert.deepEqual([first.calls[0].state, first.calls[0].error, second.text], ["failed", "No.", "It failed."]);
});

test("a stored turn has cost what its last answer says", () => {
  const usage = (costUsd) => ({ promptTokens: 10, completionTokens: 2, costUsd });
  const items = itemsFromMessages([
    line("user", [text("Add it.")]),
    line("assistant", [{ kind: "toolCall", toolCallId: "c1", toolName: "insertHtml", input: {} }], {
      turnUsage: usage(0.1),
    }),
    line("tool", [{ kind: "toolResult", ok: true }], { toolCallId: "c1" }),
    line("assistant", [text("Done.")], { turnUsage: usage(0.3) }),
    line("user", [text("And this.")]),
    line("assistant", [text("Stored before answers had a usage.")]),
  ]);
  assert.deepEqual(
    items.filter(({ kind }) => kind === "turn").map(({ view }) => view.usage?.costUsd),
    [0.3, undefined],
  );
});

test("images of a prompt keep their address", () => {
  const [item] = itemsFromMessages([
    line("user", [text("See."), { kind: "image", mimeType: "image/jpeg", url: "/x" }]),
  ]);
  assert.deepEqual([item.text, item.images], ["See.", [{ url: "/x" }]]);
});

test("an answer without its prompt, at the start of a page, is a turn", () => {
  assert.deepEqual(
    itemsFromMessages([line("assistant", [text("Done.")])]).map((item) => item.kind),
    ["turn"],
  );
});

test("a result belongs to the newest call with its id", () => {
  const asked = line("assistant", [{ kind: "toolCall", toolCallId: "c1", toolName: "insertHtml", input: {} }]);
  const answered = (ok) => line("tool", [{ kind: "toolResult", ok }], { toolCallId: "c1" });
  const [item] = itemsFromMessages([asked, answered(true), asked, answered(false)]);
  assert.deepEqual(
    item.view.rounds.map(({ calls }) => calls[0].state),
    ["ok", "failed"],
  );
});
