import assert from "node:assert/strict";
import { test } from "node:test";
import { ConflictError, Fermata, SignedOutError, UnreachableError } from "../src/index.js";
import { FakeService, json, noNetwork } from "./support/fake-service.js";

test("a refused token is asked for once more, and the request repeated with the new one", async () => {
  const service = new FakeService().on(
    "GET",
    "/scopes",
    () => json(401, { error: "Expired" }),
    () => json(200, { scopes: [] }),
  );
  const asked = [];
  const token = async ({ refresh }) => {
    asked.push(refresh);
    return refresh ? "new" : "old";
  };
  await new Fermata({ ...service.options, token }).scopes.list();
  assert.deepEqual(asked, [false, true]);
  assert.deepEqual(
    service.requests.map((request) => request.headers.get("authorization")),
    ["Bearer old", "Bearer new"],
  );
});

test("a token that is refused twice is an error, and so is a text that is refused once", async () => {
  for (const [token, count] of [
    [() => "bad", 2],
    ["bad", 1],
  ]) {
    const service = new FakeService().on("GET", "/scopes", () => json(401, { error: "Unauthorized" }));
    await assert.rejects(new Fermata({ ...service.options, token }).scopes.list(), SignedOutError);
    assert.equal(service.requests.length, count);
  }
});

test("without a token the cookies of the own origin are sent, with one no cookies", async () => {
  for (const [options, credentials] of [
    [{}, "same-origin"],
    [{ token: "t" }, "omit"],
  ]) {
    const service = new FakeService().on("GET", "/scopes", () => json(200, { scopes: [] }));
    await new Fermata({ ...service.options, ...options }).scopes.list();
    assert.equal(service.requests[0].init.credentials, credentials);
  }
});

test("a token provider that fails is asked again like a service that does not answer, and its error is the cause", async () => {
  const service = new FakeService();
  let asked = 0;
  const token = () => {
    asked += 1;
    throw new TypeError("no session");
  };
  const error = await new Fermata({ ...service.options, token }).scopes.list().catch((refused) => refused);
  assert.ok(error instanceof UnreachableError);
  assert.deepEqual([error.cause.message, asked, service.requests.length], ["no session", 3, 0]);
});

test("a token provider ends a request with an error of this package", async () => {
  const service = new FakeService();
  const token = () => {
    throw Object.assign(new SignedOutError("The session is over."), { status: 401 });
  };
  await assert.rejects(new Fermata({ ...service.options, token }).scopes.list(), SignedOutError);
});

for (const [given, sent] of [
  [null, null],
  ["", null],
  [" a-token\n", "Bearer a-token"],
])
  test(`a token ${JSON.stringify(given)} is sent as ${sent}`, async () => {
    const service = new FakeService().on("GET", "/scopes", () => json(200, { scopes: [] }));
    await new Fermata({ ...service.options, token: async () => given }).scopes.list();
    assert.equal(service.requests[0].headers.get("authorization"), sent);
  });

test("a token provider that never answers holds nobody who has stopped waiting", async () => {
  const service = new FakeService();
  const stop = new AbortController();
  const fermata = new Fermata({ ...service.options, token: () => new Promise(() => {}) });
  const listed = fermata.scopes.list({ signal: stop.signal });
  setImmediate(() => stop.abort(new Error("Enough.")));
  await assert.rejects(listed, /^Error: Enough/);
});

test("a dialect says which names of tools the editor knows", async () => {
  for (const [dialect, names] of [
    ["fermata", "seed"],
    ["instatic", "prefixed"],
    [undefined, null],
  ]) {
    const service = new FakeService().on("GET", "/scopes", () => json(200, { scopes: [] }));
    await new Fermata({ ...service.options, dialect }).scopes.list();
    assert.equal(service.requests[0].headers.get("fermata-tool-names"), names);
  }
});

test("requests that read or replace are repeated, those that create are not", async () => {
  const service = new FakeService()
    .on(
      "GET",
      "/budgets",
      noNetwork,
      () => json(503, { error: "Busy" }),
      () => json(200, { tenant: {} }),
    )
    .on("PUT", "/budgets", noNetwork, () => json(200, { tenant: {} }))
    .on("POST", "/credentials", noNetwork);
  const fermata = new Fermata(service.options);
  await fermata.budgets.get();
  await fermata.budgets.update({});
  await assert.rejects(fermata.credentials.create({}), UnreachableError);
  assert.equal(service.requests.length, 6);
});

test("a lost connection and no answer at all are errors that say what to do", async () => {
  const service = new FakeService().on("POST", "/credentials", noNetwork);
  await assert.rejects(new Fermata({ ...service.options, baseUrl: "http://127.0.0.1:1/" }).credentials.create({}), {
    name: "UnreachableError",
    message: "No service answers at http://127.0.0.1:1.",
    hint: "Check the connection to the network, and try again.",
    status: 0,
  });
});

test("segments of a path are escaped, and members that are missing are left out of the query", async () => {
  const service = new FakeService().on("GET", "/conversations/a%2F..%2Fb", () => json(200, { conversation: {} }));
  await new Fermata(service.options).conversations.get("a/../b", { limit: 5 });
  assert.deepEqual(service.requests[0].query, { limit: "5" });
});

test("an abort ends a request with the caller's own reason", async () => {
  const service = new FakeService().on("GET", "/scopes", ({ init }) => {
    return new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  });
  const controller = new AbortController();
  const listing = new Fermata(service.options).scopes.list({ signal: controller.signal });
  await new Promise((resolve) => setImmediate(resolve));
  controller.abort(new Error("the panel was closed"));
  await assert.rejects(listing, /the panel was closed/);
  await assert.rejects(new Fermata(service.options).scopes.list({ signal: controller.signal }), /the panel was closed/);
  assert.equal(service.requests.length, 1);
});

test("a service that stops sending is left after its time, and asked again", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const silent = ({ init }) =>
    new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  const service = new FakeService().on("GET", "/scopes", silent, () => json(200, { scopes: ["site"] }));
  const listing = new Fermata(service.options).scopes.list();
  while (service.requests.length === 0) await Promise.resolve();
  for (let index = 0; index < 10; index += 1) await Promise.resolve();
  t.mock.timers.tick(30_000);
  assert.deepEqual(await listing, ["site"]);
});

test("a large body has longer to be sent", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const silent = ({ init }) =>
    new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  const service = new FakeService().on("POST", "/tool-result", silent, () => json(200, { ok: true }));
  const snapshot = "x".repeat(4_000_000);
  const answering = new Fermata(service.options).answer("t1", "r1", { ok: true }, { snapshot });
  while (service.requests.length === 0) await new Promise((next) => setImmediate(next));
  t.mock.timers.tick(100_000);
  await new Promise((next) => setImmediate(next));
  assert.equal(service.requests.length, 1);
  t.mock.timers.tick(20_000);
  assert.equal(await answering, true);
});

test("a refusal keeps the service's words", async () => {
  const service = new FakeService().on("DELETE", "/credentials/c1", () =>
    json(409, { error: "A default points at it." }),
  );
  await assert.rejects(new Fermata(service.options).credentials.remove("c1"), (error) => {
    return error instanceof ConflictError && error.message === "A default points at it.";
  });
});
