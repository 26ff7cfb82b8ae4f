import assert from "node:assert/strict";
import { test } from "node:test";
import { Session } from "../src/state/session.js";
import { FakeTurn, fakeClient, loaded, refused, settled } from "./support/fake-client.js";

const EDIT = { toolCallId: "c", toolName: "insertHtml" };
const EDITED = [
  { type: "toolCall", ...EDIT, seq: 1 },
  { type: "toolRequest", ...EDIT, seq: 2 },
  { type: "toolResult", ...EDIT, ok: true, seq: 3 },
];

/** A promise that a test settles. */
function later() {
  let resolve;
  let reject;
  const promise = new Promise((...both) => {
    [resolve, reject] = both;
  });
  return { promise, resolve, reject };
}

const brokenStorage = Object.fromEntries(
  ["getItem", "setItem", "removeItem"].map((name) => [
    name,
    () => {
      throw new DOMException("The storage is blocked.", "SecurityError");
    },
  ]),
);

test("a stop before the service has started the turn ends it as soon as it has", async () => {
  const start = later();
  const session = await loaded(fakeClient({ start: () => start.promise }));
  const sent = session.send("Hello");
  await settled();
  await session.stop();
  const turn = new FakeTurn("b1");
  start.resolve(turn);
  assert.equal(await sent, true);
  assert.equal(turn.cancelled, 1);
  session.close();
});

test("a stop counts for its own turn only", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  const sent = session.send("One");
  await settled();
  await session.stop();
  await sent;
  client.turns[0].send({ type: "cancelled", seq: 1 }, "end");
  await settled();
  await session.send("Two");
  assert.deepEqual(
    client.turns.map((turn) => turn.cancelled),
    [1, 0],
  );
  session.close();
});

test("a turn that has started after the panel was closed is not followed", async () => {
  const start = later();
  const session = await loaded(fakeClient({ start: () => start.promise }));
  const sent = session.send("Hello");
  await settled();
  session.close();
  const turn = new FakeTurn("b1");
  start.resolve(turn);
  await sent;
  assert.equal(turn.detached, 1);
});

test("a session that was closed while it loaded follows nothing", async () => {
  const list = later();
  const client = fakeClient({ credentials: { list: () => list.promise } });
  client.conversations.get = async (id) => ({ conversation: { id, messages: [], activeTurn: { bridgeId: "b9" } } });
  const session = new Session({ client, scope: "site" });
  const loading = session.load("conv1");
  session.close();
  list.resolve([{ id: "k1", providerId: "p" }]);
  await loading;
  assert.deepEqual(client.calls, []);
});

test("a prompt that is sent while the panel loads is asked in the conversation that it shows then", async () => {
  const client = fakeClient();
  const session = new Session({ client, scope: "site" });
  session.load("conv7");
  assert.equal(await session.send("Hello"), true);
  assert.equal(client.calls[0][1].conversationId, "conv7");
  assert.equal(session.state.running.view.bridgeId, "b1");
  session.close();
});

test("a conversation that is opened while the panel loads stays open", async () => {
  const list = later();
  const session = new Session({ client: fakeClient({ credentials: { list: () => list.promise } }), scope: "site" });
  const loading = session.load("conv1");
  await session.openConversation("conv2");
  list.resolve([]);
  await loading;
  assert.equal(session.state.conversation.id, "conv2");
  session.close();
});

test("blocked storage and channels change nothing but what is remembered", async () => {
  const known = globalThis.BroadcastChannel;
  globalThis.BroadcastChannel = class {
    constructor() {
      throw new DOMException("The operation is insecure.", "SecurityError");
    }
  };
  try {
    const session = await loaded(fakeClient(), { storage: brokenStorage });
    assert.equal(session.state.lock, null);
    assert.equal(await session.send("Hello"), true);
    assert.equal(session.state.problem, null);
    session.startNewChat();
    session.close();
  } finally {
    globalThis.BroadcastChannel = known;
  }
});

test("a token that is refused in mid-turn signs the person out, and the turn does not seem to work on", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  await session.send("Hello");
  client.turns[0].send(refused(401, "The token has expired."));
  await settled();
  assert.deepEqual([session.state.lock, session.state.lockProblem.message], ["signedOut", "The token has expired."]);
  assert.equal(session.state.items[1].isLost, true);
  session.close();
});

test("a prompt of somebody who is signed out is not sent, and says what to do", async () => {
  const session = await loaded(fakeClient({ start: async () => Promise.reject(refused(401, "Expired.")) }));
  assert.equal(await session.send("Hello"), false);
  assert.equal(session.state.lock, "signedOut");
  session.close();
});

test("a prompt in a conversation that was deleted elsewhere begins a new one at the next attempt", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  await session.openConversation("conv1");
  const gone = async () => Promise.reject(refused(404, "This conversation does not exist."));
  Object.assign(client, { start: gone });
  client.conversations.get = gone;
  assert.equal(await session.send("Hello"), false);
  assert.equal(session.state.conversation, null);
  assert.equal(session.state.problem.message, "This conversation does not exist.");
  session.close();
});

test("a conversation that the page names and that is not there is a problem, and locks nothing", async () => {
  const get = async () => Promise.reject(refused(404, "This conversation does not exist."));
  const session = new Session({ client: fakeClient({ conversations: { get } }), scope: "site" });
  await session.load("conv1");
  assert.deepEqual([session.state.lock, session.state.problem.message], [null, "This conversation does not exist."]);
  session.close();
});

test("a panel that is loaded again while a turn starts finds it in the conversation that it has kept", async () => {
  const kept = new Map();
  const storage = {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => kept.set(key, value),
    removeItem: (key) => kept.delete(key),
  };
  const session = await loaded(fakeClient({ start: () => new Promise(() => {}) }), { storage });
  session.send("Hello");
  await settled();
  session.close();
  const client = fakeClient();
  client.conversations.get = async (id) => ({ conversation: { id, messages: [], activeTurn: { bridgeId: "b7" } } });
  const next = await loaded(client, { storage });
  assert.deepEqual(client.calls[0].slice(0, 2), ["follow", "b7"]);
  next.close();
});

test("a prompt that is refused again and again makes one conversation", async () => {
  const client = fakeClient({ start: async () => Promise.reject(refused(402, "The budget is used up.")) });
  let made = 0;
  client.conversations.create = async () => {
    made += 1;
    return { id: "conv1", title: "" };
  };
  const session = await loaded(client);
  for (let at = 0; at < 3; at += 1) await session.send("Hello");
  assert.equal(made, 1);
  session.close();
});

test("a prompt that another turn stands in the way of shows that turn, and says so", async () => {
  const client = fakeClient({ start: async () => Promise.reject(refused(409, "This conversation is busy.")) });
  const session = await loaded(client);
  await session.openConversation("conv1");
  client.conversations.get = async (id) => ({ conversation: { id, messages: [], activeTurn: { bridgeId: "b6" } } });
  assert.equal(await session.send("Hello"), false);
  assert.deepEqual(client.calls[0].slice(0, 2), ["follow", "b6"]);
  assert.equal(session.state.problem.message, "This conversation is busy.");
  session.close();
});

test("a start that was given up is asked once more under its key, until it is another start", async () => {
  const keys = [];
  const start = async ({ idempotencyKey }) => {
    keys.push(idempotencyKey);
    throw Object.assign(refused(0, "No service answers."), { idempotencyKey: idempotencyKey ?? `k${keys.length}` });
  };
  const session = await loaded(fakeClient({ start }));
  const image = new Blob(["a"]);
  await session.send("Hello", [image]);
  await session.send("Hello", [image]);
  await session.send("Hello");
  await session.send("Hello");
  session.startNewChat();
  await session.send("Hello");
  assert.deepEqual(keys, [undefined, "k1", undefined, "k3", "k3"]);
  session.close();
});

test("a start that was given up, and is asked once more after the page has changed, is shown once", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  client.start = async () => Promise.reject(Object.assign(refused(0, "No answer."), { idempotencyKey: "k1" }));
  assert.equal(await session.send("Hello"), false);
  const messages = [{ id: "b5-0", role: "user", content: [{ kind: "text", text: "Hello" }] }];
  client.conversations.get = async (id) => ({ conversation: { id, messages, activeTurn: { bridgeId: "b5" } } });
  client.start = async () => Promise.reject(refused(409, "This Idempotency-Key was used for another request."));
  assert.equal(await session.send("Hello"), true);
  assert.equal(session.state.problem, null);
  assert.deepEqual(
    session.state.items.map((item) => item.kind),
    ["user", "turn"],
  );
  session.close();
});

test("an undo that was given up is asked once more under its key", async () => {
  const keys = [];
  const undo = async (_id, { idempotencyKey }) => {
    keys.push(idempotencyKey);
    throw Object.assign(refused(0, "No service answers."), { idempotencyKey: "k1" });
  };
  const session = await loaded(fakeClient({ undo }));
  const item = { kind: "turn", key: "x", bridgeId: "b0", view: { rounds: [] } };
  await session.undo(item);
  await session.undo(item);
  assert.deepEqual(keys, [undefined, "k1"]);
  session.close();
});

test("an answer that is not what the service sends is told without words of the program", async () => {
  const session = await loaded(fakeClient({ credentials: { list: async () => undefined } }));
  assert.equal(session.state.lock, "unreachable");
  assert.doesNotMatch(session.state.lockProblem.message, /undefined|propert/);
  session.close();
});

test("a turn that could not be followed to its end can be followed again", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  await session.send("Hello");
  client.turns[0].send(new Error("The turn could not be followed."));
  await settled();
  client.conversations.get = async (id) => ({ conversation: { id, messages: [], activeTurn: { bridgeId: "b1" } } });
  await session.followAgain();
  assert.deepEqual(client.calls.at(-1).slice(0, 2), ["follow", "b1"]);
  assert.equal(session.state.problem, null);
  session.close();
});

test("a turn that was left for a conversation that cannot be opened can be followed again", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  await session.send("Hello");
  const known = client.conversations.get;
  client.conversations.get = async () => Promise.reject(refused(503, "Busy."));
  await session.openConversation("conv2").catch(() => {});
  assert.deepEqual([session.state.problem.message, session.state.items[1].isLost], ["Busy.", true]);
  client.conversations.get = async (id) => ({
    conversation: { ...(await known(id)).conversation, activeTurn: { bridgeId: "b1" } },
  });
  await session.followAgain();
  assert.deepEqual(client.calls.at(-1).slice(0, 2), ["follow", "b1"]);
  session.close();
});

test("a new chat that is begun while a conversation loads does not load for ever", async () => {
  const get = later();
  const session = await loaded(fakeClient({ conversations: { get: () => get.promise } }));
  session.openConversation("conv2");
  session.startNewChat();
  assert.equal(session.state.isLoading, false);
  session.close();
});

test("older messages that are asked for twice are shown once", async () => {
  const line = (id) => ({ id, role: "user", content: [{ kind: "text", text: id }] });
  const get = async (id, { before } = {}) =>
    before
      ? { conversation: { id, messages: [line("m1")] } }
      : { conversation: { id, messages: [line("m2")] }, nextCursor: "older" };
  const session = await loaded(fakeClient({ conversations: { get } }));
  await session.openConversation("conv1");
  await Promise.all([session.loadOlder(), session.loadOlder()]);
  assert.deepEqual(
    session.state.items.map((item) => item.key),
    ["m1", "m2"],
  );
  session.close();
});

test("older messages that cannot be read are a problem, and can be asked for again", async () => {
  const get = async (id, { before } = {}) =>
    before ? Promise.reject(refused(503, "Busy.")) : { conversation: { id, messages: [] }, nextCursor: "older" };
  const session = await loaded(fakeClient({ conversations: { get } }));
  await session.openConversation("conv1");
  await session.loadOlder();
  assert.deepEqual([session.state.problem.message, session.state.olderCursor], ["Busy.", "older"]);
  session.close();
});

test("a turn that failed after a reload is asked again with its own prompt", async () => {
  const messages = [{ id: "b9-0", role: "user", content: [{ kind: "text", text: "Go" }] }];
  const client = fakeClient();
  client.conversations.get = async (id) => ({ conversation: { id, messages, activeTurn: { bridgeId: "b9" } } });
  const session = await loaded(client);
  await session.openConversation("conv1");
  client.turns[0].send({ type: "error", message: "Overloaded.", seq: 1 }, "end");
  await settled();
  await session.retry(session.state.items[1]);
  assert.deepEqual([client.calls[1][0], client.calls[1][1].prompt], ["start", "Go"]);
  session.close();
});

test("an undo that failed is tried again as an undo", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  await session.send("Edit");
  client.turns[0].send(...EDITED, { type: "done", seq: 4 }, "end");
  await settled();
  await session.undo(session.state.items[1]);
  client.turns[1].send(
    { type: "bridgeReady", bridgeId: "b2", undoes: "b1", seq: 1 },
    { type: "error", message: "No editor answered.", seq: 2 },
    "end",
  );
  await settled();
  await session.retry(session.state.items[2]);
  assert.deepEqual(client.calls.at(-1).slice(0, 2), ["undo", "b1"]);
  session.close();
});

test("an undo that kept some edits counts anew what can be undone", async () => {
  let journal = [{ state: "applied" }, { state: "applied" }];
  const client = fakeClient({ journal: async () => journal });
  const session = await loaded(client);
  await session.send("Edit");
  client.turns[0].send(...EDITED, { type: "done", seq: 4 }, "end");
  await settled();
  const edited = session.state.items[1];
  await session.undo(edited);
  journal = [{ state: "applied" }, { state: "undone" }];
  const report = { undone: ["b1/1/1"], skipped: [{ reason: "It was changed." }] };
  client.turns[1].send(
    { type: "bridgeReady", bridgeId: "b2", undoes: "b1", seq: 1 },
    { type: "done", report, seq: 2 },
    "end",
  );
  await settled();
  assert.deepEqual([edited.edits, edited.isUndone], [1, false]);
  session.close();
});

test("an undo in one tab is seen in the other one", async () => {
  const seen = later();
  const other = new BroadcastChannel("fermata-panel:site");
  const client = fakeClient();
  const session = await loaded(client);
  await session.openConversation("conv1");
  other.onmessage = ({ data }) => seen.resolve(data);
  await session.undo({ kind: "turn", key: "x", bridgeId: "b0", view: { rounds: [] } });
  assert.deepEqual(await seen.promise, { conversationId: "conv1", bridgeId: "b1" });
  other.close();
  session.close();
});

test("a turn that another tab begins while this one still reads the last one is shown next", async () => {
  const client = fakeClient();
  const session = await loaded(client);
  await session.openConversation("conv1");
  await session.send("Hello");
  const other = new BroadcastChannel("fermata-panel:site");
  const third = new BroadcastChannel("fermata-panel:site");
  const heard = new Promise((done) => {
    third.onmessage = done;
  });
  other.postMessage({ conversationId: "conv1", bridgeId: "b8" });
  await heard;
  await settled();
  client.conversations.get = async (id) => ({ conversation: { id, messages: [], activeTurn: { bridgeId: "b8" } } });
  client.turns[0].send({ type: "done", seq: 1 }, "end");
  await settled();
  await settled();
  assert.deepEqual(client.calls.at(-1).slice(0, 2), ["follow", "b8"]);
  other.close();
  third.close();
  session.close();
});
