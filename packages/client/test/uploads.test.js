import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Fermata } from "../src/index.js";
import { uploadingFetch } from "../src/uploading-fetch.js";
import { requestBytes } from "../src/uploads.js";
import { API, FakeService, json, noNetwork, stream } from "./support/fake-service.js";

const UPLOAD = { ref: "u1", url: "http://bucket.example/u1?signature", headers: { "x-amz-checksum-sha256": "x" } };
const LARGE = { text: "x".repeat(4_600_000) };

function newService() {
  return new FakeService()
    .on("POST", "/conversations", () => json(201, { conversation: { id: "c1" } }))
    .on("POST", "/uploads", () => json(201, UPLOAD))
    .on("PUT", "/u1", () => new Response())
    .on("POST", "/tool-result", () => json(200, { ok: true }))
    .on("POST", "/chat/site", () =>
      stream([
        { type: "bridgeReady", bridgeId: "t1", seq: 1 },
        { type: "done", seq: 2 },
      ]),
    );
}
const start = (service, options) => new Fermata(service.options).start({ scope: "site", prompt: "x", ...options });
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

test("a snapshot that fits is sent in the request", async () => {
  const service = newService();
  await start(service, { snapshot: { small: true } });
  assert.deepEqual(service.sent("POST", "/chat/site")[0].body.snapshot, { small: true });
  assert.deepEqual(service.sent("POST", "/uploads"), []);
});

test("a snapshot that does not fit is uploaded, and the request refers to it", async () => {
  const service = newService();
  await start(service, { snapshot: LARGE });
  const bytes = Buffer.from(JSON.stringify(LARGE));
  assert.deepEqual(service.sent("POST", "/uploads")[0].body, {
    kind: "snapshot",
    bytes: bytes.length,
    sha256: sha256(bytes),
  });
  const [put] = service.sent("PUT", "/u1");
  assert.deepEqual([Buffer.from(put.body).equals(bytes), put.init.credentials], [true, "omit"]);
  assert.equal(put.headers.get("authorization"), null);
  const body = service.sent("POST", "/chat/site")[0].body;
  assert.deepEqual(body, { conversationId: "c1", prompt: "x", snapshotRef: "u1", browserTools: false });
});

test("a snapshot that has not changed is uploaded once", async () => {
  const service = newService();
  const fermata = new Fermata(service.options);
  await fermata.start({ scope: "site", prompt: "x", snapshot: LARGE });
  await fermata.answer("t1", "r1", { ok: true }, { snapshot: LARGE });
  assert.equal(service.sent("POST", "/uploads").length, 1);
  assert.equal(service.sent("POST", "/tool-result")[0].body.snapshotRef, "u1");
});

test("large images are uploaded, and small ones as soon as all of them do not fit", async () => {
  const large = { mimeType: "image/png", data: "A".repeat(1_400_000) };
  const small = { mimeType: "image/png", data: "B".repeat(1_200_000) };
  for (const [images, uploads] of [
    [[large, small], 1],
    [[small, small, small], 0],
    [[small, small, small, { ...small, data: "C".repeat(1_200_000) }], 2],
  ]) {
    const service = newService();
    await start(service, { images });
    const { content } = service.sent("POST", "/chat/site")[0].body;
    assert.equal(service.sent("POST", "/uploads").length, uploads);
    assert.ok(content.slice(1).every((part) => "data" in part !== "uploadRef" in part && part.mimeType));
  }
});

test("an upload whose connection breaks is tried again, and a refused one says why", async () => {
  const service = newService().on("PUT", "/u1", noNetwork, () => new Response());
  await start(service, { snapshot: LARGE });
  assert.equal(service.sent("PUT", "/u1").length, 2);
  const refusing = newService().on("POST", "/uploads", () => json(413, { error: "It is larger than 16 MiB." }));
  await assert.rejects(start(refusing, { snapshot: LARGE }), {
    name: "TooLargeError",
    message: "It is larger than 16 MiB.",
  });
});

test("an address that has its bytes already has taken them", async () => {
  const taken = () => newService().on("PUT", "/u1", () => new Response("<Error/>", { status: 412 }));
  const service = taken();
  await start(service, { snapshot: LARGE });
  assert.equal(service.sent("POST", "/chat/site")[0].body.snapshotRef, "u1");
  const other = taken();
  const body = JSON.stringify({ prompt: "x", snapshot: LARGE });
  await uploadingFetch(other.fetch)(`${API}/chat/site`, { method: "POST", body });
  assert.equal(other.sent("POST", "/chat/site")[0].body.snapshotRef, "u1");
});

test("a request is measured as the platform counts it, with quotes and backslashes escaped", () => {
  assert.equal(requestBytes("abc"), 3);
  const quotes = JSON.stringify({ text: '"'.repeat(1_200_000) });
  assert.equal(requestBytes(quotes), quotes.length + 2_400_004);
  assert.equal(requestBytes("é".repeat(2_300_000)), 4_600_000);
});

test("the fetch for other clients uploads what is too large, and passes everything else unchanged", async () => {
  const service = newService();
  const fetch = uploadingFetch(service.fetch);
  const post = (path, body, headers = {}) =>
    fetch(`http://service.example${API}${path}`, { method: "POST", body, headers, credentials: "include" });
  await post("/chat/site", JSON.stringify({ conversationId: "c1", prompt: "x", snapshot: LARGE }), {
    authorization: "Bearer t",
    "idempotency-key": "k",
  });
  const [announced, , chat] = service.requests;
  assert.deepEqual([announced.path, announced.headers.get("authorization")], ["/uploads", "Bearer t"]);
  assert.deepEqual([announced.headers.get("idempotency-key"), announced.init.credentials], [null, "include"]);
  assert.deepEqual(chat.body, { conversationId: "c1", prompt: "x", snapshotRef: "u1" });
  assert.equal(chat.headers.get("idempotency-key"), "k");
  service.requests.length = 0;
  await post("/tool-result", '{ "ok": 1 }');
  await post("/conversations", JSON.stringify(LARGE));
  await fetch("http://other.example/chat/site", { method: "POST", body: JSON.stringify(LARGE) });
  assert.equal(service.sent("POST", "/uploads").length, 0);
  assert.equal(service.requests[0].init.body, '{ "ok": 1 }');
});

test("the fetch for other clients reads a request that is given as an object", async () => {
  const service = newService();
  const sent = [];
  const noting = (input, init) => {
    if (input instanceof Request) sent.push([init?.body, input.headers.get("authorization")]);
    return service.fetch(input instanceof Request ? input.url : input, init);
  };
  const url = `http://service.example${API}/chat/site`;
  const headers = { authorization: "Bearer t" };
  const body = JSON.stringify({ prompt: "x", snapshot: LARGE });
  await uploadingFetch(noting)(new Request(url, { method: "POST", headers, body }));
  assert.deepEqual(sent, [[JSON.stringify({ prompt: "x", snapshotRef: "u1" }), "Bearer t"]]);
  assert.equal(service.sent("POST", "/uploads")[0].headers.get("authorization"), "Bearer t");
  await uploadingFetch(noting)(new Request(url, { method: "POST", headers, body: "{}" }));
  assert.equal(sent[1][0], undefined);
});

test("the fetch for other clients returns the refusal of an upload as the answer", async () => {
  const service = newService().on("POST", "/uploads", () => json(413, { error: "Too large." }));
  const fetch = uploadingFetch(service.fetch);
  const body = JSON.stringify({ snapshot: LARGE });
  const answer = await fetch(`http://service.example${API}/tool-result`, { method: "POST", body });
  assert.deepEqual([answer.status, await answer.json()], [413, { error: "Too large." }]);
});

test("an upload that the storage refuses is told as that, and not as a right that the account lacks", async () => {
  const xml = "<Error><Code>AccessForbidden</Code></Error>";
  const service = newService().on("PUT", "/u1", () => new Response(xml, { status: 403 }));
  await assert.rejects(start(service, { snapshot: LARGE }), (error) => {
    assert.deepEqual([error.status, error.code], [403, "uploadRefused"]);
    assert.match(error.message, /storage did not take an upload \(status 403\)/);
    assert.match(error.hint, /UploadOrigins/);
    assert.doesNotMatch(error.hint, /account/);
    return true;
  });
  assert.deepEqual(service.sent("POST", "/chat/site"), []);
});
