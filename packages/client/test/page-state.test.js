import assert from "node:assert/strict";
import { test } from "node:test";
import { Fermata } from "../src/index.js";
import { withPageState } from "../src/page-state.js";
import { FakeService, json, stream, TOOLS } from "./support/fake-service.js";

const UPDATES = { title: "Rye", price: 5, owner: "eve", __proto__: null, constructor: 1 };

/** A service whose agent fills in fields, and then ends its turn. */
function newService() {
  const service = new FakeService();
  const request = { type: "toolRequest", seq: 2, requestId: "r2", toolCallId: "c", toolName: "update-page-state" };
  const begin = [
    { type: "bridgeReady", bridgeId: "t1", seq: 1 },
    { ...request, input: { updates: UPDATES }, effectKey: "t1/1/1" },
  ];
  service.on("POST", "/conversations", () => json(201, { conversation: { id: "c1" } }));
  service.on("GET", "/tools/agent%3Ahelper", () => json(200, { tools: TOOLS }));
  service.on("GET", "/bridges/t1", () => json(200, { conversationId: "c1", seq: 2, pending: [] }));
  service.on("POST", "/chat/agent%3Ahelper", () => stream(begin));
  const events = () => stream(service.sent("POST", "/tool-result").length ? [{ type: "done", seq: 3 }] : []);
  service.on("GET", "/bridges/t1/events", events);
  service.on("POST", "/tool-result", () => json(200, { ok: true }));
  return service;
}

async function ask(executor, options = {}) {
  const service = newService();
  const client = new Fermata(service.options);
  const turn = await client.start({ scope: "agent:helper", prompt: "Hello", executor, ...options });
  await turn.result;
  const [{ body: prompt }] = service.sent("POST", "/chat/agent%3Ahelper");
  return { prompt, result: service.sent("POST", "/tool-result")[0]?.body.result };
}

test("an agent sees the fields of a page, fills in those that it has, and is told of the others", async () => {
  const page = { title: "Rye bread", price: 4 };
  const fields = { read: () => page, write: (updates) => Object.assign(page, updates), pageId: "rye" };
  const { prompt, result } = await ask(withPageState(fields));
  assert.deepEqual(prompt.context, {
    sharedState: { title: "Rye bread", price: 4 },
    sharedStateReadOnly: false,
    pageId: "rye",
  });
  assert.deepEqual(page, { title: "Rye", price: 5 });
  assert.deepEqual(result, { ok: true, data: { written: ["title", "price"], ignored: ["owner", "constructor"] } });
});

test("fields that can only be read are not written", async () => {
  const page = { title: "Rye bread" };
  const { prompt, result } = await ask(withPageState({ read: () => page }));
  assert.equal(prompt.context.sharedStateReadOnly, true);
  assert.deepEqual(result, { ok: false, error: "This page can only be read." });
});

test("the executor beside the fields carries out its own tools, shows its document and says more of the page", async () => {
  const calls = [];
  const executor = {
    tools: ["insertHtml"],
    execute: ({ toolName }) => {
      calls.push(toolName);
      return { ok: true };
    },
    snapshot: () => ({ snapshot: { page: "home" } }),
    context: () => ({ urlQuery: { tab: "1" } }),
  };
  const both = withPageState({ read: () => ({}), write: () => {} }, executor);
  await both.execute({ toolName: "insertHtml" });
  assert.deepEqual([calls, both.tools], [["insertHtml"], ["insertHtml", "update-page-state"]]);
  const { prompt } = await ask(both);
  assert.deepEqual([prompt.snapshot, prompt.context.urlQuery], [{ page: "home" }, { tab: "1" }]);
});

test("the page that is given to `start` counts before the executor's", async () => {
  const fields = { read: () => ({ title: "" }) };
  const { prompt } = await ask(withPageState(fields), { context: { pageId: "given" } });
  assert.deepEqual(prompt.context, { pageId: "given" });
});

test("an input without fields is refused before the page sees it", async () => {
  const fields = { read: () => ({ title: "" }), write: () => assert.fail("nothing is written") };
  const service = newService();
  const broken = {
    type: "toolRequest",
    seq: 2,
    requestId: "r2",
    toolCallId: "c",
    toolName: "update-page-state",
    input: {},
  };
  service.on("POST", "/chat/agent%3Ahelper", () => stream([{ type: "bridgeReady", bridgeId: "t1", seq: 1 }, broken]));
  const turn = await new Fermata(service.options).start({
    scope: "agent:helper",
    prompt: "Hello",
    executor: withPageState(fields),
  });
  await turn.result;
  const { result } = service.sent("POST", "/tool-result")[0].body;
  assert.deepEqual(result, { ok: false, error: "updates: Expected required property" });
});
