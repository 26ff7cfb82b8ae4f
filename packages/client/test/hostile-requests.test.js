/** Tool requests, executors and stores that are not what the client expects. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Fermata, memoryReceipts, storageReceipts } from "../src/index.js";
import { indexedDbReceipts } from "../src/receipts.js";
import { API, collect, FakeService, json, stream, TOOLS } from "./support/fake-service.js";

const ready = { type: "bridgeReady", bridgeId: "t1", seq: 1 };
const request = (more = {}) => ({
  type: "toolRequest",
  seq: 2,
  requestId: "r1",
  toolCallId: "c1",
  toolName: "insertHtml",
  effectKey: "t1/1/0",
  input: { parentId: "p", html: "x" },
  ...more,
});

/** A service whose turn makes these requests, and ends when all are answered. */
function newService(...requests) {
  let answered = () => {};
  const all = new Promise((resolve) => {
    answered = resolve;
  });
  let left = requests.length;
  const service = new FakeService()
    .on("POST", "/conversations", () => json(201, { conversation: { id: "c1" } }))
    .on("GET", "/tools/site", () => json(200, { tools: TOOLS }))
    .on("POST", "/chat/site", () => stream([ready, ...requests]))
    .on("GET", "/bridges/t1", () => json(200, { seq: 1, pending: requests }))
    .on("GET", "/bridges/t1/events", async () => {
      await all;
      return stream([{ type: "done", seq: 9 }]);
    });
  service.on("POST", "/tool-result", () => {
    left -= 1;
    if (left === 0) answered();
    return json(200, { ok: true });
  });
  return service;
}

async function answersOf(service, executor, options = {}) {
  const fermata = new Fermata({ receipts: memoryReceipts(), ...service.options, ...options });
  const turn = await fermata.start({ scope: "site", prompt: "x", executor });
  await collect(turn);
  return service.sent("POST", "/tool-result").map(({ body }) => body.result);
}

test("an input that is nested too deeply to be looked at is answered with a failure", async () => {
  const service = newService(request());
  const deep = "[".repeat(20_000) + "]".repeat(20_000);
  const line = JSON.stringify(request({ input: 0 })).replace('"input":0', `"input":${deep}`);
  service.on("POST", "/chat/site", () => new Response(`${JSON.stringify(ready)}\n${line}\n`));
  const [result] = await answersOf(service, { execute: () => ({ ok: true }) });
  assert.equal(result.ok, false);
});

for (const [name, make] of [
  ["a circle", () => Object.assign({}, ...[{}].map((data) => ({ data: Object.assign(data, { data }) })))],
  ["a BigInt", () => ({ data: { count: 1n } })],
])
  test(`a result with ${name}, which is no JSON, is answered in a smaller form`, async () => {
    const service = newService(request());
    const [result] = await answersOf(service, { execute: () => ({ ok: true, revision: "r2", ...make() }) });
    assert.deepEqual([result.ok, result.revision], [true, "r2"]);
    assert.ok(service.problems.length >= 1);
  });

test("a snapshot that is no JSON is left out of the answer", async () => {
  const snapshot = {};
  snapshot.self = snapshot;
  const service = newService(request());
  const executor = { execute: () => ({ ok: true }), snapshot: () => ({ snapshot: undefined }) };
  const fermata = new Fermata({ receipts: memoryReceipts(), ...service.options });
  const turn = await fermata.start({ scope: "site", prompt: "x", executor });
  executor.snapshot = () => ({ snapshot });
  await collect(turn);
  assert.deepEqual(service.sent("POST", "/tool-result")[0].body.result, { ok: true });
});

test("an upload that the service has lost is uploaded again, and the answer counts", async () => {
  const large = { text: "x".repeat(4_600_000) };
  const service = newService(request());
  let number = 0;
  service
    .on("POST", "/uploads", () => {
      number += 1;
      return json(201, { ref: `u${number}`, url: `http://b.example/u`, headers: {} });
    })
    .on("PUT", "/u", () => new Response());
  const answer = service.fetch;
  const refs = [];
  const fetch = async (url, init) => {
    const body = init?.method === "POST" && url.endsWith("/tool-result") ? JSON.parse(init.body) : null;
    if (body) refs.push(body.snapshotRef);
    return body?.snapshotRef === "u1" ? json(404, { error: "Nothing was uploaded." }) : answer(url, init);
  };
  const executor = { execute: () => ({ ok: true }), snapshot: () => ({ snapshot: large }) };
  await answersOf(service, executor, { fetch });
  assert.deepEqual(refs, ["u1", "u2"]);
});

test("large pictures of a result are uploaded, and small ones are sent", async () => {
  const service = newService(request());
  service
    .on("POST", "/uploads", () => json(201, { ref: "u1", url: "http://b.example/u", headers: {} }))
    .on("PUT", "/u", () => new Response());
  const images = [
    { mimeType: "image/png", data: "A".repeat(2_000_000) },
    { mimeType: "image/png", data: "AAAA" },
  ];
  const [result] = await answersOf(service, { execute: () => ({ ok: true, images }) });
  assert.deepEqual(result.images, [{ mimeType: "image/png", uploadRef: "u1" }, images[1]]);
});

test("an executor that shows no end of its snapshot does not hold who has stopped waiting", async () => {
  const service = newService();
  const stop = new AbortController();
  const executor = { execute: () => ({ ok: true }), snapshot: () => new Promise(() => {}) };
  const options = { scope: "site", prompt: "x", executor, signal: stop.signal };
  const started = new Fermata(service.options).start(options);
  setImmediate(() => stop.abort(new Error("Enough.")));
  await assert.rejects(started, /Enough/);
});

test("who is told of problems may fail, and the turn goes on", async () => {
  const service = newService(request({ toolName: "unknown" }));
  const onProblem = () => {
    throw new Error("A bug of the page.");
  };
  const known = console.error;
  console.error = () => {};
  try {
    const snapshot = () => {
      throw new Error("no snapshot");
    };
    const executor = { execute: () => ({ ok: true }) };
    const fermata = new Fermata({ receipts: memoryReceipts(), ...service.options, onProblem });
    const turn = await fermata.start({ scope: "site", prompt: "x", executor });
    executor.snapshot = snapshot;
    assert.equal((await turn.result).type, "done");
  } finally {
    console.error = known;
  }
});

test("a list of tools that is none is asked for again, and the request is answered", async () => {
  const service = newService(request());
  service.on(
    "GET",
    "/tools/site",
    () => json(200, {}),
    () => json(200, { tools: TOOLS }),
  );
  assert.deepEqual(await answersOf(service, { execute: () => ({ ok: true }) }), [{ ok: true }]);
});

test("what others have written where receipts are kept is no receipt", async () => {
  const values = new Map([
    ["fermata-receipts:a", "not JSON"],
    ["fermata-receipts:b", "5"],
    ["fermata-receipts:c", '{"call":"x","at":5}'],
  ]);
  const storage = {
    get length() {
      return values.size;
    },
    key: (index) => [...values.keys()][index] ?? null,
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
    removeItem: (key) => void values.delete(key),
  };
  const receipts = storageReceipts(storage);
  assert.deepEqual([await receipts.get("a"), await receipts.get("b")], [undefined, undefined]);
  await receipts.clear("none", 1);
  assert.deepEqual([...values.keys()], ["fermata-receipts:c"]);
});

test("a database that the browser has closed is opened again", async () => {
  let opened = 0;
  const settle = (request, result) => queueMicrotask(() => Object.assign(request, { result }).onsuccess());
  const factory = {
    open() {
      opened += 1;
      const isClosed = opened === 1;
      const database = {
        transaction() {
          if (isClosed) throw new DOMException("The database connection is closing.", "InvalidStateError");
          const get = () => {
            const found = {};
            settle(found, { call: "x", at: 1 });
            return found;
          };
          return { objectStore: () => ({ get }) };
        },
      };
      const request = {};
      settle(request, database);
      return request;
    },
  };
  const receipts = indexedDbReceipts(factory);
  await assert.rejects(receipts.get("a"), { name: "InvalidStateError" });
  assert.deepEqual(await receipts.get("a"), { call: "x", at: 1 });
});

test("a large body that is no JSON passes the fetch of other clients unchanged", async () => {
  const { uploadingFetch } = await import("../src/uploading-fetch.js");
  const sent = [];
  const fetch = uploadingFetch(async (_url, init) => {
    sent.push(init.body);
    return new Response();
  });
  const body = "x".repeat(5_000_000);
  await fetch(`http://service.example${API}/tool-result`, { method: "POST", body });
  assert.deepEqual(sent, [body]);
});
