/** What a person may decide about: how the session reads and decides, and what cards say. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { outcomeWords } from "../src/approvals/approval-card.js";
import { APPROVAL_WORDS } from "../src/approvals/approval-words.js";
import { messagesFor } from "../src/messages.js";
import { fakeClient, loaded, refused } from "./support/fake-client.js";

const WAITING = {
  approvalId: "a1",
  toolName: "applyCss",
  input: { css: "a {}" },
  inputHash: "h1",
  description: "Changes styles.",
  reasons: ["rule"],
  deadline: "2026-12-01T00:00:00Z",
  state: "waiting",
};

test("a decision is sent with the hash of what was shown", async () => {
  const sent = [];
  const decide = async (id, decision) => {
    sent.push([id, decision]);
    return { ...WAITING, state: "approved", decidedBy: "ada" };
  };
  const session = await loaded(fakeClient({ approvals: { get: async () => WAITING, decide } }));
  const { inputHash } = await session.approvals.read("a1");
  const decided = await session.approvals.decide("a1", { approved: true, inputHash });
  assert.deepEqual(sent, [["a1", { approved: true, inputHash: "h1" }]]);
  assert.deepEqual([decided.id, decided.state, decided.decidedBy], ["a1", "approved", "ada"]);
  session.close();
});

test("a tool whose schema is not known, and a client that knows no tools, have none", async () => {
  const list = async () => [{ name: "applyCss", inputSchema: { type: "object" } }];
  const session = await loaded(fakeClient({ tools: { list } }));
  assert.deepEqual(await session.approvals.schema("applyCss"), { type: "object" });
  assert.equal(await session.approvals.schema("another"), null);
  const failing = await loaded(fakeClient({ tools: { list: () => Promise.reject(refused(503, "Down.")) } }));
  assert.equal(await failing.approvals.schema("applyCss"), null);
  session.close();
  failing.close();
});

test("every state of an approval has words in every language", () => {
  for (const words of Object.values(APPROVAL_WORDS)) {
    const said = ["approved", "denied", "expired", "stale", "cancelled"].map((state) => outcomeWords({ state }, words));
    assert.equal(new Set(said).size, 5);
  }
  const denied = { state: "denied", decidedBy: "ada", reason: "Not today" };
  assert.equal(outcomeWords(denied, APPROVAL_WORDS.en), "Denied by ada: Not today");
  const changed = { state: "approved", decidedBy: "ada", changedInput: {} };
  assert.equal(outcomeWords(changed, APPROVAL_WORDS.de), "Freigegeben von ada mit geänderten Argumenten.");
});

test("a page may change single words of approvals", () => {
  const { approval } = messagesFor("en", { approval: { approve: "Let it" } });
  assert.deepEqual([approval.approve, approval.deny], ["Let it", "Deny"]);
});
