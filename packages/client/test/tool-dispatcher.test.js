import assert from "node:assert/strict";
import { test } from "node:test";
import { Fermata, memoryReceipts } from "../src/index.js";
import { FakeService, json, noNetwork, stream, TOOLS } from "./support/fake-service.js";

const ready = { type: "bridgeReady", bridgeId: "t1", seq: 1 };
const done = (seq) => ({ type: "done", seq });
const EVENTS = "/bridges/t1/events";
const INSERT = { parentId: "root", html: "<p>" };

/** A request for an insertion, as the stream and the bridge's state have it. */
const request = (seq, members = {}) => ({
  type: "toolRequest",
  seq,
  requestId: `r${seq}`,
  toolCallId: `call-${seq}`,
  toolName: "insertHtml",
  input: INSERT,
  effectKey: `t1/1/${seq}`,
  ...members,
});
const bridge = (seq, pending = []) =>
  json(200, { bridgeId: "t1", conversationId: "c1", status: "paused", seq, pending });

/** A service whose turn ends once its requests are answered. */
function newService(...events) {
  const service = new FakeService();
  service.on("POST", "/conversations", () => json(201, { conversation: { id: "c1" } }));
  service.on("GET", "/tools/site", () => json(200, { tools: TOOLS }));
  service.on("GET", "/conversations/c1", () => json(200, { conversation: { scope: "site" } }));
  service.on("POST", "/tool-result", () => json(200, { ok: true }));
  service.on("POST", "/chat/site", () => openStream(service, [ready, ...events], events.length));
  return service;
}

/** A stream that ends with `done` when so many results were posted. */
function openStream(service, events, answers) {
  const encoder = new TextEncoder();
  const write = (controller, event) => controller.enqueue(encoder.encode(`${JSON.stringify(event)}\n`));
  return new Response(
    new ReadableStream({
      async start(controller) {
        for (const event of events) write(controller, event);
        while (service.sent("POST", "/tool-result").length < answers) await new Promise((next) => setImmediate(next));
        await new Promise((next) => setImmediate(next));
        write(controller, done(99));
        controller.close();
      },
    }),
  );
}

/** An executor that notes what it did. */
function newExecutor(result = { ok: true }) {
  const calls = [];
  const execute = async (call) => {
    calls.push(call);
    return typeof result === "function" ? result(call) : result;
  };
  return { calls, execute };
}

const results = (service) => service.sent("POST", "/tool-result").map(({ body }) => body);
const run = async (service, executor, options = {}) => {
  const turn = await new Fermata(service.options).start({ scope: "site", prompt: "Hello", executor, ...options });
  return turn.result;
};

test("requests are carried out one after another, and answered with what the editor shows then", async () => {
  let open = 0;
  const service = newService(request(2), request(3, { revision: "r0" }));
  const executor = newExecutor(async ({ effectKey }) => {
    open += 1;
    assert.equal(open, 1);
    await new Promise((next) => setImmediate(next));
    open -= 1;
    return { ok: true, data: effectKey };
  });
  executor.snapshot = () => ({ snapshot: { done: executor.calls.length }, revision: `r${executor.calls.length}` });
  await run(service, executor);
  assert.deepEqual(results(service), [
    { bridgeId: "t1", requestId: "r2", result: { ok: true, data: "t1/1/2" }, snapshot: { done: 1 }, revision: "r1" },
    { bridgeId: "t1", requestId: "r3", result: { ok: true, data: "t1/1/3" }, snapshot: { done: 2 }, revision: "r2" },
  ]);
  assert.deepEqual(
    [executor.calls[1].toolName, executor.calls[1].input, executor.calls[1].revision],
    ["insertHtml", INSERT, "r0"],
  );
  assert.deepEqual(service.sent("GET", "/bridges/t1"), [], "a turn that was started here is not asked how it is");
});

test("an input that does not fit the tool's schema is refused in words that the model reads", async () => {
  const service = newService(request(2, { input: { parentId: "" } }), request(3, { toolName: "eval" }));
  const executor = newExecutor();
  await run(service, executor);
  assert.deepEqual(
    results(service).map(({ result }) => result),
    [
      { ok: false, error: "html: Expected required property; parentId: Expected string length greater or equal to 1" },
      { ok: false, error: "eval is no tool of this scope." },
    ],
  );
  assert.deepEqual(executor.calls, []);
});

test("a tool that the executor does not name is refused in words", async () => {
  const service = newService(request(2));
  const executor = { ...newExecutor(), tools: ["read_document"] };
  await run(service, executor);
  assert.deepEqual(results(service)[0].result, { ok: false, error: "This editor cannot carry out insertHtml." });
  assert.deepEqual(executor.calls, []);
});

test("a schema with a keyword that is not known refuses its tool aloud", async () => {
  const service = newService(request(2));
  const inputSchema = { type: "object", properties: { html: { type: "string", format: "html" } } };
  service.on("GET", "/tools/site", () => json(200, { tools: [{ ...TOOLS[0], inputSchema }] }));
  await run(service, newExecutor());
  assert.deepEqual(results(service)[0].result, {
    ok: false,
    error: "This editor cannot check the input of insertHtml.",
  });
  assert.deepEqual(
    service.problems.map(({ name, message }) => [name, message]),
    [["SchemaError", "The schema html has unknown keywords: format."]],
  );
});

test("an exception and a result that is none become failed results", async () => {
  const service = newService(request(2), request(3));
  await run(
    service,
    newExecutor(({ effectKey }) => {
      if (effectKey === "t1/1/2") throw new RangeError("There is no node n9.");
    }),
  );
  assert.deepEqual(
    results(service).map(({ result }) => result.error),
    [
      "insertHtml failed in the editor: There is no node n9.",
      "insertHtml failed in the editor: its executor returned no result",
    ],
  );
});

test("a result whose acknowledgement was lost is sent again, and the call not done again", async () => {
  const service = newService();
  service.on("POST", "/chat/site", () => openStream(service, [ready, request(2)], 3));
  service.on("POST", "/tool-result", noNetwork, noNetwork, () => json(200, { ok: true }));
  const executor = newExecutor({ ok: true, data: 7 });
  await run(service, executor);
  assert.equal(results(service).length, 3);
  assert.equal(new Set(results(service).map((body) => JSON.stringify(body))).size, 1);
  assert.equal(executor.calls.length, 1);
});

test("a request that cannot be answered for long is answered when the service is there again", async () => {
  const service = newService(request(2));
  const none = Array.from({ length: 6 }, () => noNetwork);
  service.on("GET", "/tools/site", ...none, () => json(200, { tools: TOOLS }));
  service.on("GET", "/bridges/t1", () => bridge(2, [request(2)]));
  const executor = newExecutor();
  await run(service, executor);
  assert.deepEqual([executor.calls.length, results(service).length, service.problems], [1, 1, []]);
  assert.ok(service.waits.includes(5000));
});

test("a request whose answer is refused is not carried out again", async () => {
  const service = newService(request(2), request(3));
  service.on("POST", "/tool-result", () => json(403, { error: "You may not write." }));
  const executor = newExecutor();
  await run(service, executor);
  assert.deepEqual(
    executor.calls.map(({ effectKey }) => effectKey),
    ["t1/1/2", "t1/1/3"],
  );
  assert.ok(service.problems.every(({ name }) => name === "ForbiddenError"));
});

test("a request that somebody else has answered, or that is too old, is no error", async () => {
  for (const status of [404, 409]) {
    const service = newService(request(2));
    service.on("POST", "/tool-result", () => json(status, { error: "Too late." }));
    assert.equal((await run(service, newExecutor())).type, "done");
    assert.deepEqual([results(service).length, service.problems], [1, []]);
  }
});

test("a result that is refused is sent in a smaller form, and an edit that was made never reported as failed", async () => {
  const edit = { ok: true, data: "x", inverse: { tool: "restore", input: { patch: {} } }, revision: "r2" };
  for (const [status, result, forms] of [
    [
      413,
      edit,
      [
        edit,
        { ok: true, data: "x", revision: "r2" },
        { ok: true, data: { note: "The editor's result could not be sent." }, revision: "r2" },
      ],
    ],
    [
      400,
      { ok: true, images: [{}] },
      [
        { ok: true, images: [{}] },
        { ok: true, data: { imagesLeftOut: 1 } },
      ],
    ],
    [
      413,
      { ok: true, data: { html: "<p>" }, images: [{ mimeType: "image/png", data: "AA" }] },
      [
        { ok: true, data: { html: "<p>" }, images: [{ mimeType: "image/png", data: "AA" }] },
        { ok: true, data: { html: "<p>", imagesLeftOut: 1 } },
      ],
    ],
    [
      413,
      { ok: true, data: "all of it" },
      [
        { ok: true, data: "all of it" },
        { ok: false, error: "The editor's result could not be sent." },
      ],
    ],
  ]) {
    const service = newService(request(2));
    const refuse = () => json(status, { error: "No." });
    service.on("POST", "/tool-result", ...forms.slice(1).map(() => refuse), () => json(200, { ok: true }));
    service.on("POST", "/chat/site", () => openStream(service, [ready, request(2)], forms.length));
    await run(service, newExecutor(result));
    assert.deepEqual(
      results(service).map((body) => body.result),
      forms,
    );
    assert.equal(service.problems.length, forms.length - 1);
  }
});

test("after a lost connection only requests that still wait are carried out", async () => {
  const service = newService();
  service.on("POST", "/chat/site", () => stream([ready], { ending: "break" }));
  service.on("GET", EVENTS, () => openStream(service, [request(2), request(4)], 1));
  service.on("GET", "/bridges/t1", () => bridge(5, [{ ...request(4), type: undefined }]));
  const executor = newExecutor();
  await run(service, executor);
  assert.deepEqual(
    executor.calls.map((call) => call.effectKey),
    ["t1/1/4"],
  );
  assert.equal(service.sent("GET", "/bridges/t1").length, 1);
});

test("a turn that is followed later is asked once what waits, wherever following begins", async () => {
  for (const afterSeq of [0, 9]) {
    const service = newService();
    const seen = [ready, request(2), request(4), { type: "toolResult", toolCallId: "call-2", seq: 5 }];
    service.on("GET", EVENTS, () =>
      openStream(
        service,
        seen.filter(({ seq }) => seq > afterSeq),
        1,
      ),
    );
    service.on("GET", "/bridges/t1", () => bridge(9, [request(4)]));
    const executor = newExecutor();
    await new Fermata(service.options).follow("t1", { executor, afterSeq, scope: "site" }).result;
    assert.deepEqual(
      executor.calls.map((call) => call.effectKey),
      ["t1/1/4"],
    );
    assert.equal(service.sent("GET", "/bridges/t1").length, 1);
  }
});

test("the scope of a followed turn is found out", async () => {
  const service = newService();
  service.on("GET", EVENTS, () => openStream(service, [ready, request(2)], 1));
  service.on("GET", "/bridges/t1", () => bridge(2, [request(2)]));
  const executor = newExecutor();
  await new Fermata(service.options).follow("t1", { executor }).result;
  assert.equal(executor.calls.length, 1);
});

/** A service whose turn waits for an answer until its page is closed. */
function newWaitingService(open) {
  const service = newService();
  service.on("POST", "/chat/site", ({ init }) => stream([ready, open], { ending: "open", signal: init.signal }));
  service.on("POST", "/tool-result", ({ init }) => stream([], { ending: "open", signal: init.signal }));
  return service;
}

test("a page that is loaded again answers from the receipt, and does nothing twice", async () => {
  const receipts = memoryReceipts();
  const first = newWaitingService(request(2));
  const executor = newExecutor({ ok: true, data: "made" });
  const lost = await new Fermata({ ...first.options, receipts }).start({ scope: "site", prompt: "x", executor });
  while (results(first).length === 0) await new Promise((next) => setImmediate(next));
  const second = newService();
  second.on("GET", EVENTS, () => openStream(second, [ready, request(2)], 1));
  second.on("GET", "/bridges/t1", () => bridge(2, [request(2)]));
  const other = newExecutor();
  await new Fermata({ ...second.options, receipts }).follow("t1", { executor: other, lease: "another page" }).result;
  assert.deepEqual([other.calls, results(second)[0].result], [[], { ok: true, data: "made" }]);
  lost.detach();
});

test("a write that was begun in a page that died is not done again; a read is", async () => {
  for (const [toolName, input, times] of [
    ["insertHtml", INSERT, 1],
    ["read_document", {}, 2],
  ]) {
    const receipts = memoryReceipts();
    const open = request(2, { toolName, input });
    const first = newWaitingService(open);
    const dying = newExecutor(() => new Promise(() => {}));
    const lost = await new Fermata({ ...first.options, receipts }).start({
      scope: "site",
      prompt: "x",
      executor: dying,
      lease: `the first page of ${toolName}`,
    });
    while (dying.calls.length === 0) await new Promise((next) => setImmediate(next));
    const second = newService();
    second.on("GET", EVENTS, () => openStream(second, [ready, open], 1));
    second.on("GET", "/bridges/t1", () => bridge(2, [open]));
    const other = newExecutor();
    await new Fermata({ ...second.options, receipts }).follow("t1", { executor: other, lease: "another page" }).result;
    assert.equal(dying.calls.length + other.calls.length, times, toolName);
    assert.match(JSON.stringify(results(second)[0].result), times === 1 ? /outcome is unknown/ : /"ok":true/);
    lost.detach();
  }
});

test("after a rewound log another call under the same key is carried out, and the same call is not", async () => {
  const rewound = () => json(400, { error: "No such event.", code: "logRewound", lastSeq: 1 });
  const other = request(3, { effectKey: "t1/1/2", input: { parentId: "root", html: "<h1>" } });
  const service = newService();
  service.on("POST", "/chat/site", () => stream([ready, request(2)]));
  service.on("GET", EVENTS, rewound, () => openStream(service, [ready, request(2), other], 3));
  service.on("GET", "/bridges/t1", () => bridge(3, [request(2), other]));
  const executor = newExecutor();
  await run(service, executor);
  assert.deepEqual(
    executor.calls.map(({ input }) => input.html),
    ["<p>", "<h1>"],
  );
  assert.equal(results(service).length, 3);
});

test("a store that fails is reported, and the turn goes on", async () => {
  const fail = async () => {
    throw new Error("QuotaExceededError");
  };
  const service = newService(request(2));
  const receipts = { get: fail, set: fail, clear: fail };
  const executor = newExecutor();
  const turn = await new Fermata({ ...service.options, receipts }).start({ scope: "site", prompt: "x", executor });
  await turn.result;
  assert.deepEqual([executor.calls.length, results(service).length], [1, 1]);
  assert.deepEqual(
    service.problems.map(({ message }) => message),
    ["QuotaExceededError"],
  );
});

test("a store that never answers is left, and the turn goes on", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const service = newService(request(2), request(3));
  let asked = 0;
  const never = () => {
    asked += 1;
    return new Promise(() => {});
  };
  const executor = newExecutor();
  const turn = await new Fermata({ ...service.options, receipts: { get: never, set: never, clear: never } }).start({
    scope: "site",
    prompt: "x",
    executor,
  });
  while (asked === 0) await new Promise((next) => setImmediate(next));
  t.mock.timers.tick(3000);
  await turn.result;
  assert.deepEqual([asked, executor.calls.length, results(service).length], [1, 2, 2]);
  assert.equal(service.problems.length, 1);
});

test("a result is posted without the snapshot that cannot be uploaded", async () => {
  const service = newService(request(2));
  service.on("POST", "/uploads", () => json(413, { error: "It is larger than 16 MiB." }));
  const executor = { ...newExecutor(), snapshot: () => ({ snapshot: "x".repeat(5_000_000), revision: "r2" }) };
  await run(service, executor, { snapshot: {} });
  assert.deepEqual(results(service), [{ bridgeId: "t1", requestId: "r2", result: { ok: true }, revision: "r2" }]);
  assert.deepEqual(
    service.problems.map(({ name }) => name),
    ["TooLargeError"],
  );
});

test("receipts are removed when the turn has ended", async () => {
  const cleared = [];
  const receipts = { ...memoryReceipts(), clear: async (...named) => void cleared.push(named) };
  const service = newService(request(2));
  const turn = await new Fermata({ ...service.options, receipts }).start({
    scope: "site",
    prompt: "x",
    executor: newExecutor(),
  });
  await turn.result;
  await new Promise((next) => setImmediate(next));
  assert.equal(cleared.length, 1);
  assert.equal(cleared[0][0], "t1 ");
});

test("what runs when the turn ends is told by its signal, and its result not posted", async () => {
  const service = newService();
  let isToldAt;
  service.on("POST", "/chat/site", () => stream([ready, request(2), { type: "cancelled", seq: 3 }]));
  const executor = newExecutor(async ({ signal }) => {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    isToldAt = "end";
    return { ok: true };
  });
  await run(service, executor);
  for (let index = 0; index < 20; index += 1) await new Promise((next) => setImmediate(next));
  if (executor.calls.length > 0) assert.equal(isToldAt, "end");
  assert.deepEqual([results(service), service.problems], [[], []]);
});

test("a request is not carried out once its turn has ended, though the list of tools comes only then", async () => {
  const service = newService(request(2));
  let answer;
  service.on(
    "GET",
    "/tools/site",
    () => new Promise((resolve) => (answer = () => resolve(json(200, { tools: TOOLS })))),
  );
  service.on("POST", "/chat/site", () => stream([ready, request(2), { type: "cancelled", seq: 3 }]));
  const executor = newExecutor();
  assert.equal((await run(service, executor)).type, "cancelled");
  answer?.();
  await new Promise((next) => setTimeout(next, 20));
  assert.deepEqual([executor.calls, results(service)], [[], []]);
});

test("of two followers in one page one executes, and the other one takes over when it leaves", async () => {
  const open = request(2, { toolName: "read_document", input: {} });
  const service = newService();
  service.on("POST", "/chat/site", ({ init }) => stream([ready, open], { ending: "open", signal: init.signal }));
  service.on("GET", EVENTS, () => openStream(service, [ready, open], 1));
  service.on("GET", "/bridges/t1", () => bridge(2, [open]));
  const fermata = new Fermata({ ...service.options, receipts: memoryReceipts() });
  const first = newExecutor(({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
  const second = newExecutor({ ok: true, data: "by the second" });
  const begun = await fermata.start({ scope: "site", prompt: "x", executor: first });
  while (first.calls.length === 0) await new Promise((next) => setImmediate(next));
  const other = fermata.follow("t1", { executor: second, scope: "site" });
  for (let index = 0; index < 20; index += 1) await new Promise((next) => setImmediate(next));
  assert.deepEqual([first.calls.length, second.calls.length], [1, 0]);
  begun.detach();
  assert.equal((await other.result).type, "done");
  assert.deepEqual([first.calls.length, second.calls.length, results(service)[0].result.data], [1, 1, "by the second"]);
});

test("an undo's request is carried out though no list has its tool, and its patch must be an object", async () => {
  const restore = (seq, patch) => request(seq, { toolName: "restore", input: { patch }, undoes: "t0/1/0" });
  const service = newService();
  service.on("POST", "/bridges/t0/undo", () => openStream(service, [ready, restore(2, { at: 1 }), restore(3, "x")], 2));
  const executor = newExecutor();
  const undo = await new Fermata(service.options).undo("t0", { executor, through: "t0/1/0" });
  await undo.result;
  assert.deepEqual(
    executor.calls.map(({ toolName, undoes, input }) => [toolName, undoes, input]),
    [["restore", "t0/1/0", { patch: { at: 1 } }]],
  );
  assert.deepEqual(service.sent("POST", "/bridges/t0/undo")[0].body, { through: "t0/1/0" });
  assert.equal(results(service)[1].result.error, 'patch: Expected object, got "x"');
});
