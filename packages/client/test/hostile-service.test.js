/** What a service, a proxy or a network sends that is not what the client expects: on a socket, as it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Fermata,
  InvalidResponseError,
  memoryReceipts,
  RateLimitError,
  TurnLostError,
  UnreachableError,
} from "../src/index.js";
import { collect } from "./support/fake-service.js";
import { answer, html, json, openServer, raw, reset, stream } from "./support/scripted-server.js";

const ready = { type: "bridgeReady", bridgeId: "t1", seq: 1 };
const text = (seq, words = "word") => ({ type: "text", text: words, seq });
const done = (seq) => ({ type: "done", seq });
const EVENTS = "GET /bridges/t1/events";
const LIST = "GET /scopes";

/** A client that waits for nothing, and what it would have waited for. */
function newClient(server, options = {}) {
  const waits = [];
  const problems = [];
  const wait = async (milliseconds, signal) => {
    signal?.throwIfAborted();
    waits.push(milliseconds);
  };
  const given = {
    baseUrl: server.url,
    wait,
    receipts: memoryReceipts(),
    onProblem: (problem) => problems.push(problem),
  };
  return Object.assign(new Fermata({ ...given, ...options }), { waits, problems });
}

for (const piece of [1, 2, 3, 7, 64])
  test(`a stream that comes in pieces of ${piece} bytes is the same stream`, async (t) => {
    const lines = [ready, "\n", "\r\n", text(2, "Käse 🧀 \u0000\u2028"), text(3, "x".repeat(500)), done(4)];
    const server = await openServer(t, { [EVENTS]: [stream(lines, { piece })] });
    const events = await collect(newClient(server).follow("t1"));
    assert.deepEqual(events, [ready, text(2, "Käse 🧀 \u0000\u2028"), text(3, "x".repeat(500)), done(4)]);
  });

test("events that come twice, go back, have no number or none that is one are passed over", async (t) => {
  const odd = [text(2), text(1), text(-5), text(2.5), text("3"), text(null), { type: "new", seq: 3 }, {}, text(1e300)];
  const server = await openServer(t, { [EVENTS]: [stream([ready, ...odd, text(4), done(5)])] });
  const events = await collect(newClient(server).follow("t1"));
  assert.deepEqual(
    events.map(({ seq }) => seq),
    [1, 2, 3, 4, 5],
  );
});

test("a second name of the bridge does not lead to another turn", async (t) => {
  const other = { type: "bridgeReady", bridgeId: "t2", seq: 2 };
  const server = await openServer(t, { [EVENTS]: [stream([ready, other]), stream([done(3)])] });
  await newClient(server).follow("t1").result;
  assert.equal(server.count("GET /bridges/t2/events"), 0);
});

for (const [name, first] of [
  ["a reset", reset],
  ["a reset in the middle of an event", stream([ready, '{"type":"te'], { ending: "reset" })],
  ["an end in the middle of an event", stream([ready, '{"type":"te'])],
  ["a page of HTML", html(200)],
  ["a page of HTML that says 502", html(502)],
  ["an answer without a body", answer(204, "")],
  ["nothing", raw("HTTP/1.1 200 Said\r\ncontent-length: 0\r\n\r\n")],
  ["what is no HTTP", raw("SSH-2.0-OpenSSH\r\n")],
  ["a null byte", stream([ready, "\u0000\n"])],
  ["a list", stream([ready, "[1]\n"])],
  ["garbage behind an event", stream([ready, "<html>\n"])],
  ["another type of content", stream([ready], { type: "text/html" })],
])
  test(`${name} in place of a stream costs one more attempt`, async (t) => {
    const server = await openServer(t, { [EVENTS]: [first, stream([ready, text(2), done(3)])] });
    const client = newClient(server);
    const events = await collect(client.follow("t1"));
    assert.deepEqual(
      events.map(({ seq }) => seq),
      [1, 2, 3],
    );
    assert.equal(server.count(EVENTS), 2);
  });

test("a service that never sends an event is given up, and says why", async (t) => {
  const server = await openServer(t, { [EVENTS]: [html(200)] });
  const error = await newClient(server)
    .follow("t1")
    .result.catch((lost) => lost);
  assert.ok(error instanceof TurnLostError);
  assert.ok(error.cause instanceof InvalidResponseError);
  assert.equal(server.count(EVENTS), 30);
});

for (const [name, retryAfter] of [
  ["seconds", () => "3"],
  ["a date", () => new Date(Date.now() + 3000).toUTCString()],
])
  test(`a wait that is told as ${name} is kept`, async (t) => {
    const busy = (status) => (socket) => json({ error: "Busy." }, status, { "retry-after": retryAfter() })(socket);
    const server = await openServer(t, { [LIST]: [busy(429), busy(503), json({ scopes: [] })] });
    const client = newClient(server);
    await client.scopes.list();
    assert.equal(client.waits.length, 2);
    for (const waited of client.waits) assert.ok(waited >= 1000 && waited < 4000, `${waited}`);
  });

test("a date to wait for is read by the clock of the service", async (t) => {
  const now = Date.now() - 86_400_000; // the browser's clock is a day ahead
  const headers = { date: new Date(now).toUTCString(), "retry-after": new Date(now + 5000).toUTCString() };
  const server = await openServer(t, { [LIST]: [json({ error: "Busy." }, 429, headers), json({ scopes: [] })] });
  const client = newClient(server);
  await client.scopes.list();
  assert.ok(client.waits[0] >= 5000 && client.waits[0] < 6000);
});

test("a wait of an hour is told, and not waited for", async (t) => {
  const server = await openServer(t, { [LIST]: [json({ error: "Busy." }, 429, { "retry-after": "3600" })] });
  const error = await newClient(server)
    .scopes.list()
    .catch((refused) => refused);
  assert.ok(error instanceof RateLimitError);
  assert.deepEqual([error.message, error.retryAfter, server.count(LIST)], ["Busy.", 3_600_000, 1]);
});

for (const [name, body] of [
  ["null", "null"],
  ["a list", "[]"],
  ["a number", "1"],
  ["a text", '"ok"'],
  ["half an object", '{"scopes":'],
  ["nothing", ""],
])
  test(`${name} is no answer, and is told in words of this package`, async (t) => {
    const server = await openServer(t, { [LIST]: [answer(200, body)] });
    await assert.rejects(newClient(server).scopes.list(), InvalidResponseError);
    assert.equal(server.count(LIST), 3);
  });

test("an answer that stops in the middle is asked for again", async (t) => {
  const cut = (socket) => {
    socket.write('HTTP/1.1 200 Said\r\ncontent-length: 100\r\n\r\n{"scopes":[');
    setImmediate(() => socket.resetAndDestroy());
  };
  const server = await openServer(t, { [LIST]: [cut, json({ scopes: [] })] });
  await newClient(server).scopes.list();
  assert.equal(server.count(LIST), 2);
});

test("an error in another form than the service's own has its words all the same", async (t) => {
  const body = { error: { message: "The gateway is closed.", type: "gateway" } };
  const server = await openServer(t, { [LIST]: [json(body, 400)] });
  await assert.rejects(newClient(server).scopes.list(), { message: "The gateway is closed." });
});

test("a start that is led elsewhere begins no turn", async (t) => {
  const moved = raw("HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n");
  const server = await openServer(t, {
    "POST /conversations": [json({ conversation: { id: "c1" } }, 201)],
    "POST /chat/site": [moved],
    "GET /login": [html(200)],
  });
  await assert.rejects(newClient(server).start({ scope: "site", prompt: "x" }), InvalidResponseError);
});

test("a turn without an id is no turn", async (t) => {
  const server = await openServer(t, {
    "POST /conversations": [json({ conversation: { id: "c1" } }, 201)],
    "POST /chat/site": [stream([{ type: "bridgeReady", seq: 1 }]), stream([ready, done(2)])],
  });
  const turn = await newClient(server).start({ scope: "site", prompt: "x" });
  assert.equal(turn.id, "t1");
});

for (const retryAfter of [-1, 0, "soon", 1e12, null])
  test(`a hold that says ${retryAfter} is asked after in seconds`, async (t) => {
    const held = { type: "held", until: "2030-01-01T00:00:00Z", retryAfter, seq: 1 };
    const server = await openServer(t, {
      [EVENTS]: [stream([ready, held], { ending: "open" }), stream([done(2)])],
      "GET /bridges/t1": [json({ status: "held", seq: 1 }), json({ status: "running", seq: 2 })],
    });
    const client = newClient(server);
    await client.follow("t1").result;
    for (const waited of client.waits) assert.ok(waited >= 1000 && waited <= 60_000, `${waited}`);
  });

test("a journal whose pages lead back ends", async (t) => {
  const page = json({ entries: [{ effectKey: "a" }], nextCursor: "again" });
  const server = await openServer(t, { "GET /bridges/t1/journal": [page] });
  assert.equal((await newClient(server).journal("t1")).length, 2);
});

test("following can be ended at every moment", async (t) => {
  const server = await openServer(t, { [EVENTS]: [stream([ready, text(2)], { ending: "reset" })] });
  for (let moment = 0; moment < 12; moment += 1) {
    const stop = new AbortController();
    const turn = newClient(server, { token: async () => "t" }).follow("t1", { signal: stop.signal });
    for (let at = 0; at < moment; at += 1) await new Promise((resolve) => setImmediate(resolve));
    stop.abort(new Error("Enough."));
    await assert.rejects(turn.result, /Enough/);
    await assert.rejects(collect(turn), /Enough/);
    assert.equal(turn.connection, "closed");
  }
});

test("who is told of the connection may fail, and the turn goes on", async (t) => {
  const server = await openServer(t, { [EVENTS]: [stream([ready, done(2)])] });
  const client = newClient(server);
  const onConnection = () => {
    throw new Error("A bug of the page.");
  };
  assert.equal((await client.follow("t1", { onConnection }).result).type, "done");
  assert.equal(client.problems[0].message, "A bug of the page.");
});

test("a token that cannot be fetched for a moment costs the turn nothing", async (t) => {
  const server = await openServer(t, { [EVENTS]: [stream([ready]), stream([text(2), done(3)])] });
  let asked = 0;
  const token = async () => {
    asked += 1;
    if (asked === 2) throw new TypeError("Failed to fetch");
    return "t";
  };
  assert.equal((await newClient(server, { token }).follow("t1").result).seq, 3);
});

test("a service that is not there is told as such", async () => {
  const gone = { url: "http://127.0.0.1:1" };
  await assert.rejects(newClient(gone).scopes.list(), UnreachableError);
});

test("what was deleted by an attempt whose answer was lost is deleted, and what never was is not found", async (t) => {
  const gone = json({ error: "There is no such conversation." }, 404);
  const server = await openServer(t, { "DELETE /conversations/c1": [reset, gone], "DELETE /conversations/c2": [gone] });
  const client = newClient(server);
  await client.conversations.remove("c1");
  await assert.rejects(client.conversations.remove("c2"), { status: 404 });
});
