import assert from "node:assert/strict";
import { test } from "node:test";
import { Fermata, NotFoundError, TurnLostError } from "../src/index.js";
import { collect, FakeService, json, noNetwork, stream } from "./support/fake-service.js";

const ready = { type: "bridgeReady", bridgeId: "t1", seq: 1 };
const text = (seq) => ({ type: "text", text: `word ${seq}`, seq });
const done = (seq) => ({ type: "done", seq });
const EVENTS = "/bridges/t1/events";

const newService = () =>
  new FakeService().on("POST", "/conversations", () => json(201, { conversation: { id: "c1" } }));
const start = (service, options = {}) =>
  new Fermata(service.options).start({ scope: "site", prompt: "Hello", ...options });

test("a turn is started in a new conversation, and its events come once, in order", async () => {
  const service = newService().on("POST", "/chat/site", () => stream([ready, "", text(2), text(2), text(3), done(4)]));
  const turn = await start(service, { model: "m1" });
  assert.deepEqual([turn.id, turn.conversationId], ["t1", "c1"]);
  assert.deepEqual(
    (await collect(turn)).map((event) => event.seq),
    [1, 2, 3, 4],
  );
  assert.deepEqual(await turn.result, done(4));
  assert.deepEqual(service.requests[0].body, { scope: "site", modelId: "m1" });
  assert.deepEqual(service.requests[1].body, { conversationId: "c1", prompt: "Hello", browserTools: false });
});

test("any number of readers gets all events, also after the end", async () => {
  const service = newService().on("POST", "/chat/site", () => stream([ready, text(2), done(3)]));
  const turn = await start(service);
  const [first, second] = await Promise.all([collect(turn), collect(turn)]);
  assert.deepEqual(first, second);
  assert.deepEqual(await collect(turn), first);
});

test("a start whose answer is lost joins the turn with the same key", async () => {
  const service = newService().on("POST", "/chat/site", noNetwork, () => stream([ready, done(2)]));
  await (await start(service)).result;
  const keys = service.sent("POST", "/chat/site").map((request) => request.headers.get("idempotency-key"));
  assert.equal(keys.length, 2);
  assert.equal(keys[0], keys[1]);
  assert.ok(keys[0].length >= 32);
});

test("a start that nobody answers is given up, and a refusal is raised at once", async () => {
  const dead = newService().on("POST", "/chat/site", noNetwork);
  await assert.rejects(start(dead), { name: "UnreachableError" });
  assert.equal(dead.sent("POST", "/chat/site").length, 6);
  const refusing = newService().on("POST", "/chat/site", () => json(402, { error: "The budget is used up." }));
  await assert.rejects(start(refusing), { name: "BudgetError", message: "The budget is used up." });
});

test("a broken stream is followed from the last event on", async () => {
  const service = newService()
    .on("POST", "/chat/site", () => stream([ready, text(2)], { ending: "break" }))
    .on(
      "GET",
      EVENTS,
      noNetwork,
      () => stream([text(2), text(3)], { ending: "break" }),
      () => stream([done(4)]),
    );
  const events = await collect(await start(service));
  assert.deepEqual(
    events.map((event) => event.seq),
    [1, 2, 3, 4],
  );
  assert.deepEqual(
    service.sent("GET", EVENTS).map((request) => request.query.after),
    ["2", "2", "3"],
  );
});

test("a stream that was closed with progress is continued without waiting", async () => {
  const service = new FakeService().on(
    "GET",
    EVENTS,
    () => stream([ready]),
    () => stream([text(2)]),
    () => stream([done(3)]),
  );
  await new Fermata(service.options).follow("t1").result;
  assert.deepEqual(service.waits, []);
});

test("a busy service is asked again when it says", async () => {
  const busy = () => json(429, { error: "Slow down" }, { "retry-after": "9" });
  const service = new FakeService().on("GET", EVENTS, busy, () => stream([ready, done(2)]));
  await new Fermata(service.options).follow("t1").result;
  assert.equal(service.waits.length, 1);
  assert.ok(service.waits[0] >= 9000 && service.waits[0] < 9200);
});

test("a start that would have to wait for long is refused at once, so that the user knows", async () => {
  const limited = () => json(429, { error: "The next prompt is possible in 40 seconds." }, { "retry-after": "40" });
  for (const [method, path] of [
    ["POST", "/chat/site"],
    ["POST", "/uploads"],
  ]) {
    const service = newService().on(method, path, limited);
    const snapshot = path === "/uploads" ? "x".repeat(5_000_000) : undefined;
    await assert.rejects(start(service, { snapshot }), { name: "RateLimitError", retryAfter: 40_000 });
    assert.deepEqual(service.waits, []);
  }
});

test("a turn that can be reached no more is lost, and says by which bridge it can be found", async () => {
  const service = new FakeService().on("GET", EVENTS, noNetwork);
  const turn = new Fermata(service.options).follow("t1");
  await assert.rejects(turn.result, (error) => error instanceof TurnLostError && error.message.includes("t1"));
  assert.equal(service.sent("GET", EVENTS).length, 30);
});

test("a turn that does not exist is not asked for again", async () => {
  const service = new FakeService().on("GET", EVENTS, () => json(404, { error: "There is no such turn." }));
  await assert.rejects(new Fermata(service.options).follow("t9x").result, NotFoundError);
  await assert.rejects(collect(new Fermata(service.options).follow("t1")), NotFoundError);
});

test("after a rewound log the events begin again", async () => {
  const rewound = () => json(400, { error: "There is no such event.", code: "logRewound", lastSeq: 2 });
  const service = newService()
    .on("POST", "/chat/site", () => stream([ready, text(2), text(3)]))
    .on("GET", EVENTS, rewound, () => stream([ready, text(2), done(3)]));
  const turn = await start(service);
  const events = await collect(turn);
  assert.deepEqual(
    events.map((event) => event.seq ?? event.type),
    [1, 2, 3, "logRewound", 1, 2, 3],
  );
  assert.deepEqual(
    (await collect(turn)).map((event) => event.type),
    ["logRewound", "bridgeReady", "text", "done"],
  );
});

test("a held turn is asked how it is until it moves, and then listened to again", async () => {
  const state = (status, seq) => () => json(200, { bridgeId: "t1", status, seq, pending: [] });
  const service = new FakeService()
    .on(
      "GET",
      EVENTS,
      () => stream([ready, { type: "held", until: "…", retryAfter: 7, seq: 1 }], { ending: "open" }),
      () => stream([done(5)]),
    )
    .on("GET", "/bridges/t1", state("paused", 1), state("paused", 1), state("running", 3));
  const turn = new Fermata(service.options).follow("t1");
  assert.deepEqual(
    (await collect(turn)).map(({ type, seq }) => [type, seq]),
    [
      ["bridgeReady", 1],
      ["held", undefined],
      ["done", 5],
    ],
  );
  assert.deepEqual(service.waits, [7000, 7000, 7000]);
});

test("a held turn that has moved on before it is first asked is listened to again, though it rests", async () => {
  const request = { type: "toolRequest", requestId: "r", toolCallId: "c", toolName: "x", input: {}, seq: 4 };
  const service = new FakeService()
    .on(
      "GET",
      EVENTS,
      () => stream([ready, { type: "held", until: "…", retryAfter: 30, seq: 1 }], { ending: "open" }),
      () => stream([request, done(5)]),
    )
    .on("GET", "/bridges/t1", () => json(200, { bridgeId: "t1", status: "paused", seq: 4, pending: [] }));
  const events = await collect(new Fermata(service.options).follow("t1"));
  assert.deepEqual(
    events.map(({ type }) => type),
    ["bridgeReady", "held", "toolRequest", "done"],
  );
  assert.deepEqual(service.waits, [30_000]);
});

test("whoever follows from an event on gets only later ones", async () => {
  const service = new FakeService().on("GET", EVENTS, () => stream([text(8), done(9)]));
  const events = await collect(new Fermata(service.options).follow("t1", { afterSeq: 7 }));
  assert.equal(service.requests[0].query.after, "7");
  assert.deepEqual(
    events.map((event) => event.seq),
    [8, 9],
  );
});

test("an abort ends following, not the turn", async () => {
  const service = new FakeService().on("GET", EVENTS, ({ init }) =>
    stream([ready], { ending: "open", signal: init.signal }),
  );
  const controller = new AbortController();
  const turn = new Fermata(service.options).follow("t1", { signal: controller.signal });
  for await (const event of turn.events()) if (event.seq === 1) break;
  controller.abort(new Error("left"));
  await assert.rejects(turn.result, /left/);
  assert.equal(turn.connection, "closed");
  assert.deepEqual(service.sent("POST", "/bridges/t1/cancel"), []);
  const other = new Fermata(service.options).follow("t1");
  other.detach();
  await assert.rejects(other.result, { name: "AbortError" });
});

test("a turn tells how its connection is", async () => {
  const states = [];
  const service = new FakeService().on("GET", EVENTS, noNetwork, () => stream([ready, done(2)]));
  await new Fermata(service.options).follow("t1", { onConnection: (state) => states.push(state) }).result;
  assert.deepEqual(states, ["waiting", "connecting", "open", "closed"]);
});

test("going offline closes the connection at once, and being online again opens the next one", async (t) => {
  const browser = new EventTarget();
  const navigator = { onLine: true };
  for (const [name, value] of Object.entries({
    navigator,
    addEventListener: browser.addEventListener.bind(browser),
    removeEventListener: browser.removeEventListener.bind(browser),
  })) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true });
    t.after(() => (before ? Object.defineProperty(globalThis, name, before) : delete globalThis[name]));
  }
  const states = [];
  const opened = ({ init }) => stream([ready], { ending: "open", signal: init.signal });
  const service = new FakeService().on("GET", EVENTS, opened, () => stream([done(2)]));
  const asleep = (_, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const turn = new Fermata({ ...service.options, wait: asleep }).follow("t1", {
    onConnection(state) {
      states.push(state);
      if (state !== "offline") return;
      navigator.onLine = true;
      setImmediate(() => browser.dispatchEvent(new Event("online")));
    },
  });
  for await (const event of turn.events()) {
    if (event.seq !== 1) continue;
    navigator.onLine = false;
    browser.dispatchEvent(new Event("offline"));
  }
  assert.deepEqual(states, ["open", "offline", "connecting", "open", "closed"]);
});

test("the words, the images and what the editor shows are sent with a prompt", async () => {
  const service = newService().on("POST", "/chat/site", () => stream([ready, done(2)]));
  const executor = { execute: () => ({ ok: true }), snapshot: async () => ({ snapshot: { page: 1 }, revision: "r1" }) };
  const images = [new Blob([Uint8Array.of(1, 2, 255)], { type: "image/png" }), { mimeType: "image/gif", data: "AAAA" }];
  await await start(service, {
    executor,
    images,
    conversationId: "c9",
    model: { credentialId: "k", modelId: "m" },
  }).catch((error) => error);
  const [first, second] = service.requests;
  assert.deepEqual(
    [first.method, first.path, first.body],
    ["PUT", "/conversations/c9", { credentialId: "k", modelId: "m" }],
  );
  assert.equal(second, undefined);
  service.on("PUT", "/conversations/c9", () => json(200, { conversation: {} }));
  await (await start(service, { executor, images, conversationId: "c9", model: "m" })).result;
  assert.deepEqual(service.sent("POST", "/chat/site")[0].body, {
    conversationId: "c9",
    content: [
      { kind: "text", text: "Hello" },
      { kind: "image", mimeType: "image/png", data: "AQL/" },
      { kind: "image", mimeType: "image/gif", data: "AAAA" },
    ],
    snapshot: { page: 1 },
    revision: "r1",
  });
});

test("a start that was given up tells the key and the conversation with which the same start joins its turn", async () => {
  const service = newService().on("POST", "/chat/site", noNetwork);
  const error = await start(service).catch((refused) => refused);
  assert.equal(error.conversationId, "c1");
  const keys = new Set(service.sent("POST", "/chat/site").map(({ headers }) => headers.get("idempotency-key")));
  assert.deepEqual([...keys], [error.idempotencyKey]);
  const { idempotencyKey, conversationId } = error;
  service.on("POST", "/chat/site", () => stream([ready, done(2)]));
  const turn = await start(service, { idempotencyKey, conversationId });
  assert.equal(service.requests.at(-1).headers.get("idempotency-key"), idempotencyKey);
  assert.equal(turn.id, "t1");
});

test("a start that something stands in the way of tells no key, because the key itself may be in the way", async () => {
  const service = newService().on("POST", "/chat/site", () => json(409, { error: "Used for another request." }));
  const error = await start(service).catch((refused) => refused);
  assert.equal(error.idempotencyKey, undefined);
});
