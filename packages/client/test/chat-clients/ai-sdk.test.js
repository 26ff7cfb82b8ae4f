/** The npm package `ai` in the versions that people use, against the service: every version does the same. */

import assert from "node:assert/strict";
import { test } from "node:test";
import * as ai7 from "ai";
import * as ai5 from "ai5";
import * as ai6 from "ai6";

const { FERMATA_URL: BASE, FERMATA_TOKEN: TOKEN } = process.env;
const SCRIPTS = JSON.parse(process.env.FERMATA_SCRIPTS ?? "{}");
const VERSIONS = { 5: ai5, 6: ai6, 7: ai7 };
const LOCATE = { name: "locate", description: "Finds out where the user is.", parameters: { type: "object" } };
const MAX_POSTS = 6;
let chats = 0;

/** What a framework's binding keeps of a chat. */
class PlainState {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => this.messages.push(message);
  popMessage = () => this.messages.pop();
  replaceMessage = (index, message) => this.messages.splice(index, 1, message);
  snapshot = (value) => structuredClone(value);
}

/** Open a chat; `posts` has the bodies of its requests. */
function openChat(
  version,
  { id = `chat-${version}-${process.pid}-${++chats}`, agent = "site", tools, ...options } = {},
) {
  const ai = VERSIONS[version];
  const posts = [];
  const transport = new ai.DefaultChatTransport({
    api: `${BASE}/api/agent/shop/bread/${agent}?sdk=${version}`,
    headers: { authorization: `Bearer ${TOKEN}` },
    body: { snapshot: { page: { id: "p" }, site: { pages: [] } }, ...(tools ? { tools } : {}) },
    fetch: async (url, init) => {
      if (init?.method === "POST") posts.push(JSON.parse(init.body));
      assert.ok(posts.length < MAX_POSTS, "the client posts again and again");
      return fetch(url, init);
    },
  });
  class PlainChat extends ai.AbstractChat {}
  const chat = new PlainChat({ id, transport, state: new PlainState(), ...options });
  return { ai, chat, posts, id };
}

const textOf = (message) => message.parts.filter((part) => part.type === "text").map((part) => part.text);
const toolsOf = (message) => message.parts.filter((part) => part.type.startsWith("tool-"));

/** Wait until a chat has sent nothing for a moment: the client sends by itself after a response. */
async function settle({ chat, posts }) {
  for (let quiet = 0, seen = -1; quiet < 6; quiet++) {
    const isBusy = chat.status === "submitted" || chat.status === "streaming";
    if (isBusy || posts.length !== seen) quiet = 0;
    seen = posts.length;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

for (const version of [5, 6, 7]) {
  test(`version ${version}: text, then an answer that is asked again, then an edited message`, async () => {
    const { chat, posts } = openChat(version);
    await chat.sendMessage({ text: SCRIPTS.text });
    assert.equal(chat.status, "ready", chat.error?.message);
    assert.deepEqual(textOf(chat.messages[1]), ["Nothing to do."]);
    const first = chat.messages[1].id;
    await chat.regenerate();
    assert.deepEqual(textOf(chat.messages[1]), ["Nothing to do."]);
    assert.notEqual(chat.messages[1].id, first);
    assert.equal(chat.messages.length, 2);
    await chat.sendMessage({ text: `Edited. ${SCRIPTS.text}`, messageId: chat.messages[0].id });
    assert.equal(chat.messages.length, 2);
    assert.equal(posts.length, 3);
  });

  test(`version ${version}: a tool of the service is answered within the response`, async () => {
    const { chat, posts } = openChat(version);
    await chat.sendMessage({ text: SCRIPTS.read });
    assert.equal(chat.status, "ready", chat.error?.message);
    const [call] = toolsOf(chat.messages.at(-1));
    assert.equal(call.state, "output-available", JSON.stringify(call));
    assert.ok(call.output);
    assert.deepEqual(textOf(chat.messages.at(-1)), ["I have read it."]);
    assert.equal(posts.length, 1);
  });

  test(`version ${version}: tools of the client run, and the client sends their results by itself, once`, async () => {
    const ran = [];
    const opened = openChat(version, {
      tools: [LOCATE],
      sendAutomaticallyWhen: VERSIONS[version].lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall }) => {
        ran.push(toolCall.input.of);
        const output = { city: `near ${toolCall.input.of}` };
        void opened.chat.addToolResult({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output });
      },
    });
    await opened.chat.sendMessage({ text: SCRIPTS.locate });
    await settle(opened);
    const { chat, posts } = opened;
    assert.equal(chat.status, "ready", chat.error?.message);
    assert.deepEqual(ran, ["user", "shop"]);
    assert.equal(posts.length, 2);
    assert.equal(chat.messages.length, 2, "one bubble");
    assert.deepEqual(textOf(chat.messages[1]), ["I look.", "Two streets away."]);
  });

  test(`version ${version}: what waits is resumed by another client, which runs nothing twice`, async () => {
    const first = openChat(version, { tools: [LOCATE] });
    await first.chat.sendMessage({ text: SCRIPTS.locate });
    assert.equal(toolsOf(first.chat.messages[1]).length, 2);
    const ran = [];
    const second = openChat(version, {
      id: first.id,
      tools: [LOCATE],
      sendAutomaticallyWhen: VERSIONS[version].lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall }) => {
        ran.push(toolCall.input.of);
        void second.chat.addToolResult({ tool: "locate", toolCallId: toolCall.toolCallId, output: toolCall.input.of });
      },
    });
    await second.chat.resumeStream();
    await settle(second);
    assert.equal(second.chat.status, "ready", second.chat.error?.message);
    assert.deepEqual(ran, ["user", "shop"]);
    assert.deepEqual(textOf(second.chat.messages.at(-1)), ["I look.", "Two streets away."]);
    await second.chat.resumeStream(); // nothing runs: 204
    assert.equal(second.chat.status, "ready");
    assert.equal(second.posts.length, 1);
  });

  test(`version ${version}: a refusal is an error with the service's words, and so is a failure`, async () => {
    const unknown = openChat(version, { agent: "nobody" });
    await unknown.chat.sendMessage({ text: "Hello" });
    assert.equal(unknown.chat.status, "error");
    assert.match(unknown.chat.error.message, /There is no such agent/);
    const failing = openChat(version);
    await failing.chat.sendMessage({ text: SCRIPTS.failure });
    assert.equal(failing.chat.status, "error");
    assert.ok(failing.chat.error.message.length > 10, failing.chat.error.message);
  });

  test(`version ${version}: a stopped turn waits no more`, async () => {
    const { chat, id, posts } = openChat(version, { tools: [LOCATE] });
    await chat.sendMessage({ text: SCRIPTS.locate });
    const headers = { authorization: `Bearer ${TOKEN}` };
    const stopped = await fetch(`${BASE}/api/agents/site/${encodeURIComponent(id)}/stop`, { method: "POST", headers });
    assert.equal((await stopped.json()).status, "cancelled");
    await chat.sendMessage({ text: SCRIPTS.text });
    assert.deepEqual(textOf(chat.messages.at(-1)), ["Nothing to do."]);
    assert.equal(posts.length, 2);
  });
}

for (const version of [6, 7]) {
  for (const approved of [true, false]) {
    test(`version ${version}: a call is ${approved ? "approved" : "denied"} in the chat`, async () => {
      const { lastAssistantMessageIsCompleteWithApprovalResponses: isDecided } = VERSIONS[version];
      const opened = openChat(version, { sendAutomaticallyWhen: isDecided });
      await opened.chat.sendMessage({ text: SCRIPTS.approval });
      const [call] = toolsOf(opened.chat.messages[1]);
      assert.equal(call.state, "approval-requested", JSON.stringify(call));
      await opened.chat.addToolApprovalResponse({ id: call.approval.id, approved, reason: "As you like." });
      await settle(opened);
      assert.equal(opened.chat.status, "ready", opened.chat.error?.message);
      const [decided] = toolsOf(opened.chat.messages[1]);
      assert.equal(decided.state, approved ? "output-available" : "output-denied", JSON.stringify(decided));
      assert.deepEqual(textOf(opened.chat.messages[1]), ["Decided."]);
      assert.equal(opened.posts.length, 2);
    });
  }
}

test("version 5: an approval comes as data, is decided at the service, and the answer is resumed", async () => {
  const opened = openChat(5);
  await opened.chat.sendMessage({ text: SCRIPTS.approval });
  assert.equal(opened.chat.status, "ready", opened.chat.error?.message);
  const { data } = opened.chat.messages[1].parts.find((part) => part.type === "data-approval");
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const body = JSON.stringify({ approved: true, inputHash: data.inputHash });
  const decided = await fetch(`${BASE}/admin/api/ai/approvals/${data.approvalId}`, { method: "POST", headers, body });
  assert.equal(decided.status, 200, await decided.text());
  await opened.chat.resumeStream();
  await settle(opened);
});
