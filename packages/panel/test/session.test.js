import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeClient, loaded, MODEL, refused, settled } from "./support/fake-client.js";

test("a session is ready with the default model of its scope", async () => {
  const session = await loaded(fakeClient());
  assert.deepEqual([session.state.lock, session.state.modelInfo, session.state.isLoading], [null, MODEL, false]);
  session.close();
});

test("without a key it is locked until one is added", async () => {
  const session = await loaded(fakeClient({ credentials: { list: async () => [] } }));
  assert.equal(session.state.lock, "setup");
  session.close();
});

test("without a default it is locked until a model is chosen", async () => {
  const session = await loaded(fakeClient({ defaults: { list: async () => ({}) } }));
  assert.equal(session.state.lock, "chooseModel");
  session.chooseModel({ credentialId: "k1", modelId: "m1" }, MODEL);
  assert.equal(session.state.lock, null);
  session.close();
});

for (const [status, lock] of [
  [401, "signedOut"],
  [403, "forbidden"],
  [0, "unreachable"],
])
  test(`status ${status} locks it as ${lock}, in the service's words`, async () => {
    const list = async () => Promise.reject(refused(status, "The service's words."));
    const session = await loaded(fakeClient({ credentials: { list } }));
    assert.deepEqual([session.state.lock, session.state.lockProblem.message], [lock, "The service's words."]);
    session.close();
  });

test("a prompt shows at once, and its turn until it ends", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  assert.equal(await session.send("Hello"), true);
  assert.deepEqual(
    session.state.items.map((item) => item.kind),
    ["user", "turn"],
  );
  client.turns[0].send({ type: "text", text: "Hi", seq: 1 }, { type: "done", seq: 2 }, "end");
  await settled();
  assert.equal(session.state.running, null);
  assert.equal(session.state.items[1].view.rounds[0].text, "Hi");
  assert.equal(session.state.conversation.title, "A title");
  session.close();
});

test("a refused prompt leaves nothing in the thread, and a problem in words", async () => {
  const session = await loaded(
    fakeClient({ start: async () => Promise.reject(refused(402, "The budget is used up.")) }),
  );
  assert.equal(await session.send("Hello"), false);
  assert.deepEqual(session.state.items, []);
  assert.deepEqual([session.state.problem.message, session.state.problem.hint], ["The budget is used up.", "Do this."]);
  assert.equal(session.state.isStarting, false);
  session.close();
});

test("a second prompt while one runs is not sent", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  await Promise.all([session.send("One"), session.send("Two")]);
  assert.equal(client.calls.length, 1);
  session.close();
});

test("the model is told only where it is not the conversation's", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  session.state.conversation = { id: "conv1", credentialId: "k1", modelId: "m1" };
  await session.send("Hello");
  assert.equal(client.calls[0][1].model, undefined);
  session.close();
});

test("a conversation in which a turn runs is followed from its beginning", async () => {
  const messages = [
    { id: "b9-0", role: "user", content: [{ kind: "text", text: "Go" }] },
    { id: "b9-1", role: "assistant", content: [{ kind: "text", text: "half" }] },
  ];
  const get = async (id) => ({ conversation: { id, messages, activeTurn: { bridgeId: "b9", seq: 7 } } });
  const client = fakeClient({ conversations: { get } });
  const session = await loaded(client);
  await session.openConversation("conv9");
  assert.deepEqual([client.calls[0][0], client.calls[0][1], client.calls[0][2].afterSeq], ["follow", "b9", 0]);
  assert.deepEqual(
    session.state.items.map((item) => item.kind),
    ["user", "turn"],
  );
  session.close();
});

test("another conversation is not disturbed by the turn of the one before", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  await session.send("Hello");
  const [turn] = client.turns;
  session.startNewChat();
  turn.send({ type: "text", text: "late", seq: 1 }, "end");
  await settled();
  assert.deepEqual([session.state.items, turn.detached, session.state.running], [[], 1, null]);
  session.close();
});

test("the conversation that was open is opened again, and forgotten once it is deleted", async () => {
  const kept = new Map([["fermata-panel:site", "conv5"]]);
  const storage = {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => kept.set(key, value),
    removeItem: (key) => kept.delete(key),
  };
  const session = await loaded(fakeClient(), { storage });
  assert.equal(session.state.conversation.id, "conv5");
  session.close();
  const gone = fakeClient({ conversations: { get: async () => Promise.reject(refused(404, "Gone.")) } });
  const next = await loaded(gone, { storage });
  assert.deepEqual([next.state.lock, next.state.problem, kept.size], [null, null, 0]);
  next.close();
});

test("an undo marks the turn that it has taken back", async () => {
  const client = fakeClient({ journal: async () => [{ state: "applied" }] });
  const session = await loaded(client);
  await session.send("Edit");
  const call = { toolCallId: "c", toolName: "insertHtml" };
  client.turns[0].send(
    { type: "toolCall", ...call, seq: 1 },
    { type: "toolRequest", ...call, seq: 2 },
    { type: "toolResult", ...call, ok: true, seq: 3 },
    { type: "done", seq: 4 },
    "end",
  );
  await settled();
  const edited = session.state.items[1];
  assert.equal(edited.edits, 1);
  await session.undo(edited);
  client.turns[1].send(
    { type: "bridgeReady", bridgeId: "b2", undoes: "b1", seq: 1 },
    { type: "done", report: { undone: ["b1/1/0"], skipped: [] }, seq: 2 },
    "end",
  );
  await settled();
  assert.equal(edited.isUndone, true);
  session.close();
});

test("a turn that cannot be followed leaves a problem, and the session goes on", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  await session.send("Hello");
  client.turns[0].send(new Error("The turn could not be followed."));
  await settled();
  assert.deepEqual([session.state.problem.message, session.state.running], ["The turn could not be followed.", null]);
  session.close();
});

test("stopping ends the turn", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  await session.send("Hello");
  await session.stop();
  assert.equal(client.turns[0].cancelled, 1);
  session.close();
});
