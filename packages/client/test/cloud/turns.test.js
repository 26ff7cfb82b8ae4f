import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ConflictError, ForbiddenError, NotFoundError, SignedOutError } from "@fermata/client";
import { CHAT_TOKEN, collect, newClient, newEditor, openProxy, scripted } from "../support/cloud.js";

const SITE = { scope: "site" };
const PIECES = ["<p>one</p>", "<p>two</p>"];
const typesOf = (events) => events.map((event) => event.type);
const seqsOf = (events) => events.map((event) => event.seq);
const isRising = (numbers) => numbers.every((number, index) => index === 0 || number > numbers[index - 1]);

test("a turn edits the document, its journal lists the edits, and they are undone and redone", async () => {
  const editor = newEditor();
  const fermata = newClient();
  const turn = await fermata.start({ ...SITE, prompt: scripted("insert"), executor: editor });
  const events = await collect(turn);
  assert.deepEqual(editor.pieces, PIECES);
  assert.equal((await turn.result).type, "done");
  assert.ok(isRising(seqsOf(events)));
  const journal = await turn.journal();
  assert.deepEqual(
    journal.map(({ toolName, state }) => [toolName, state]),
    [
      ["insertHtml", "applied"],
      ["insertHtml", "applied"],
    ],
  );
  const undo = await turn.undo();
  assert.equal((await undo.result).report.undone.length, 2);
  assert.deepEqual(editor.pieces, []);
  await (await undo.undo({ executor: editor })).result;
  assert.deepEqual(editor.pieces, PIECES);
  await (await turn.undo({ through: journal[1].effectKey })).result;
  assert.deepEqual(editor.pieces, PIECES.slice(0, 1));
  await assert.rejects(fermata.undo("no-such-turn", { executor: editor }), NotFoundError);
  assert.deepEqual(fermata.problems, []);
});

test("connections that break again and again lose no event, and nothing is done twice", async (t) => {
  const proxy = await openProxy(t, { bytesPerStream: 900 });
  const editor = newEditor();
  const fermata = newClient({ baseUrl: proxy.url, wait: async () => {} });
  const { id: conversationId } = await newClient().conversations.create(SITE);
  const turn = await fermata.start({ ...SITE, conversationId, prompt: scripted("insert"), executor: editor });
  const events = await collect(turn);
  assert.deepEqual(editor.pieces, PIECES);
  assert.equal(typesOf(events).at(-1), "done");
  const all = await collect(newClient().follow(turn.id));
  assert.deepEqual(seqsOf(events), seqsOf(all));
  assert.ok(proxy.count > 3, `${proxy.count} connections`);
});

test("all connections are killed at each event, and the turn goes on", async (t) => {
  const proxy = await openProxy(t);
  const editor = newEditor();
  const fermata = newClient({ baseUrl: proxy.url, wait: async () => {} });
  const turn = await fermata.start({ ...SITE, prompt: scripted("insert"), executor: editor });
  const events = [];
  for await (const event of turn.events()) {
    events.push(event);
    proxy.cut();
  }
  assert.deepEqual([editor.pieces, new Set(editor.calls).size, editor.calls.length], [PIECES, 2, 2]);
  assert.deepEqual(seqsOf(events), seqsOf(await collect(newClient().follow(turn.id))));
});

test("a result whose acknowledgement is lost is posted again, and accepted", async () => {
  const editor = newEditor();
  const statuses = [];
  const losing = async (url, init) => {
    const response = await fetch(url, init);
    if (!String(url).endsWith("/tool-result")) return response;
    statuses.push(response.status);
    if (statuses.length % 2 === 1) throw new TypeError("fetch failed");
    return response;
  };
  const fermata = newClient({ fetch: losing, wait: async () => {} });
  const turn = await fermata.start({ ...SITE, prompt: scripted("insert"), executor: editor });
  const events = await collect(turn);
  assert.deepEqual(editor.pieces, PIECES);
  assert.ok(statuses.length >= 3 && statuses.every((status) => status === 200), statuses.join());
  assert.ok(events.filter(({ type }) => type === "toolResult").every(({ ok }) => ok));
});

test("a start whose answer is lost is repeated, and joins the turn that it has started", async () => {
  let starts = 0;
  const losing = async (url, init) => {
    const response = await fetch(url, init);
    if (!String(url).includes("/chat/")) return response;
    starts += 1;
    if (starts > 1) return response;
    await response.body.getReader().read();
    throw new TypeError("fetch failed");
  };
  const editor = newEditor();
  const fermata = newClient({ fetch: losing, wait: async () => {} });
  const turn = await fermata.start({ ...SITE, prompt: scripted("insert"), executor: editor });
  await turn.result;
  const { conversation } = await fermata.conversations.get(turn.conversationId);
  assert.equal(conversation.messages.filter(({ role }) => role === "user").length, 1);
  assert.deepEqual([starts, editor.pieces], [2, PIECES]);
});

test("a start with a key that was used before joins its turn, and nothing is done twice", async () => {
  const fermata = newClient();
  const editor = newEditor();
  const { id: conversationId } = await fermata.conversations.create(SITE);
  const options = {
    ...SITE,
    conversationId,
    prompt: scripted("insert"),
    idempotencyKey: crypto.randomUUID(),
    executor: editor,
  };
  const first = await fermata.start({ ...options, snapshot: {}, revision: "r0" });
  const second = await newClient().start({ ...options, snapshot: {}, revision: "r0" });
  assert.equal(first.id, second.id);
  assert.deepEqual([(await first.result).type, (await second.result).type], ["done", "done"]);
  assert.deepEqual(editor.pieces, PIECES);
  await assert.rejects(fermata.start({ ...options, snapshot: {}, prompt: "Something else" }), ConflictError);
});

test("an editor that knows the newer names of tools gets them, and undoes as any other", async () => {
  const editor = newEditor();
  const names = [];
  const executor = {
    ...editor,
    tools: ["site_insert_html", "restore"],
    execute: (call) => {
      names.push(call.toolName);
      return editor.execute(call);
    },
  };
  const turn = await newClient({ dialect: "instatic" }).start({ ...SITE, prompt: scripted("insert"), executor });
  await turn.result;
  assert.deepEqual([names, editor.pieces], [["site_insert_html", "site_insert_html"], PIECES]);
  await (await turn.undo()).result;
  assert.deepEqual([names.slice(2), editor.pieces], [["restore", "restore"], []]);
});

test("a page that is loaded again while a request waits carries it out once", async () => {
  const first = newClient();
  const waiting = { execute: () => new Promise(() => {}) };
  const turn = await first.start({ ...SITE, prompt: scripted("read"), executor: waiting, lease: "the first page" });
  const seen = [];
  for await (const event of turn.events()) {
    seen.push(event);
    if (event.type === "toolRequest") break;
  }
  turn.detach();
  const editor = newEditor();
  const { conversation } = await newClient().conversations.get(turn.conversationId);
  assert.equal(conversation.activeTurn.bridgeId, turn.id);
  const second = newClient().follow(turn.id, { executor: editor, afterSeq: seen.at(-1).seq });
  const rest = await collect(second);
  assert.deepEqual([editor.calls.length, rest.at(-1).type], [1, "done"]);
  assert.ok(isRising(seqsOf([...seen, ...rest])));
});

test("a cancelled turn ends, and what runs for it is told", async () => {
  const fermata = newClient();
  let isTold = false;
  let begin;
  const begun = new Promise((resolve) => {
    begin = resolve;
  });
  const executor = {
    execute: ({ signal }) =>
      new Promise((_, reject) => {
        begin();
        signal.addEventListener("abort", () => {
          isTold = true;
          reject(signal.reason);
        });
      }),
  };
  const turn = await fermata.start({ ...SITE, prompt: scripted("read"), executor });
  await begun;
  assert.equal((await turn.cancel()).status, "cancelled");
  assert.equal((await turn.result).type, "cancelled");
  assert.equal((await turn.cancel()).status, "cancelled");
  await new Promise((next) => setImmediate(next));
  assert.ok(isTold);
  assert.deepEqual(fermata.problems, []);
});

test("a follower that is ahead of the log begins again", async () => {
  const turn = await newClient().start({ ...SITE, prompt: scripted("insert"), executor: newEditor() });
  const last = (await turn.result).seq;
  const later = await collect(newClient().follow(turn.id, { afterSeq: last - 1 }));
  assert.deepEqual(seqsOf(later), [last]);
  const ahead = await collect(newClient({ wait: async () => {} }).follow(turn.id, { afterSeq: last + 100 }));
  assert.equal(ahead[0].type, "logRewound");
  assert.deepEqual(seqsOf(ahead.slice(1)), seqsOf(await collect(turn)));
});

test("a snapshot of six million characters and a large image go through uploads", async () => {
  const sent = [];
  const noting = (url, init) => {
    sent.push(`${init.method} ${new URL(url).pathname.replace("/admin/api/ai", "").slice(0, 12)}`);
    return fetch(url, init);
  };
  const fermata = newClient({ fetch: noting });
  const snapshot = { page: { id: "p", title: "P", rootNodeId: "root" }, rest: "x".repeat(6_000_000) };
  const editor = { ...newEditor(), snapshot: () => ({ snapshot, revision: "r1" }) };
  const turn = await fermata.start({ ...SITE, prompt: scripted("insert"), executor: editor });
  assert.equal((await turn.result).type, "done");
  assert.equal(editor.pieces.length, 2);
  assert.deepEqual(
    [
      sent.filter((line) => line === "POST /uploads").length,
      sent.filter((line) => line.startsWith("PUT /_bucket")).length,
    ],
    [1, 1],
  );
  const image = readFileSync(process.env.FERMATA_LARGE_PNG);
  assert.ok(image.length > 1_000_000);
  const seeing = await fermata.start({
    ...SITE,
    prompt: scripted("text"),
    images: [new Blob([image], { type: "image/png" })],
  });
  assert.equal((await seeing.result).type, "done");
  assert.equal(sent.filter((line) => line === "POST /uploads").length, 2);
  const { conversation } = await fermata.conversations.get(seeing.conversationId);
  const message = conversation.messages.find(({ role }) => role === "user");
  const index = message.content.findIndex(({ kind }) => kind === "image");
  const shown = await fermata.conversations.image(conversation.id, message.id, index);
  assert.equal(shown.type, "image/jpeg");
});

test("refusals have their classes, with the service's own words", async () => {
  await assert.rejects(newClient({ token: "no.such.token" }).scopes.list(), SignedOutError);
  await assert.rejects(newClient({ token: CHAT_TOKEN }).audit.get(), ForbiddenError);
  const fermata = newClient();
  await assert.rejects(fermata.follow("no-such-turn").result, NotFoundError);
  const turn = await fermata.start({ ...SITE, prompt: scripted("text") });
  await turn.result;
  const nothing = (error) => error instanceof ConflictError && error.message.includes("nothing to undo");
  await assert.rejects(turn.undo({ executor: newEditor() }), nothing);
  await assert.rejects(newClient({ baseUrl: "http://127.0.0.1:9", wait: async () => {} }).scopes.list(), {
    name: "UnreachableError",
  });
});

test("a user who may not write still follows the turn, and hears what was refused", async () => {
  const fermata = newClient({ token: CHAT_TOKEN });
  const turn = await newClient().start({ ...SITE, prompt: scripted("insert"), browserTools: true });
  const watching = fermata.follow(turn.id, { executor: newEditor() });
  for await (const event of watching.events()) if (event.type === "toolRequest") break;
  while (fermata.problems.length === 0) await new Promise((next) => setTimeout(next, 10));
  assert.equal(fermata.problems[0].name, "ForbiddenError");
  await turn.cancel();
  assert.equal((await watching.result).type, "cancelled");
});

test("an answer can be given by hand, again, and not differently", async () => {
  const fermata = newClient();
  const turn = await fermata.start({ ...SITE, prompt: scripted("read"), browserTools: true });
  let request;
  for await (const event of turn.events()) {
    if (event.type !== "toolRequest") continue;
    request = event;
    break;
  }
  const output = { ok: true, data: { html: "<p>" } };
  assert.equal(await fermata.answer(turn.id, request.requestId, output), true);
  assert.equal(await fermata.answer(turn.id, request.requestId, output), true);
  assert.equal(await fermata.answer(turn.id, request.requestId, { ok: false, error: "x" }), false);
  assert.equal((await turn.result).type, "done");
});

test("without an executor the agent talks, and the turn waits for nobody", async () => {
  const turn = await newClient().start({ ...SITE, prompt: "What is on this page?" });
  const types = typesOf(await collect(turn));
  assert.equal(types.at(-1), "done");
  assert.ok(types.includes("text"));
  assert.ok(!types.includes("toolRequest"));
});

test("a model that calls a tool of the editor without an executor reads at once that nobody carries it out", async () => {
  const turn = await newClient().start({ ...SITE, prompt: scripted("insert") });
  const events = await collect(turn);
  assert.equal(events.at(-1).type, "done");
  assert.ok(!typesOf(events).includes("toolRequest"));
});
