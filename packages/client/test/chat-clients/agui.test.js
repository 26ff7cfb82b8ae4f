/** `@ag-ui/client`, and CopilotKit's client without a runtime, against the service. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { HttpAgent } from "@ag-ui/client";

const { FERMATA_URL: BASE, FERMATA_TOKEN: TOKEN } = process.env;
const SCRIPTS = JSON.parse(process.env.FERMATA_SCRIPTS ?? "{}");
const LOCATE = { name: "locate", description: "Finds out where the user is.", parameters: { type: "object" } };
const headers = { authorization: `Bearer ${TOKEN}` };

function newAgent(options = {}) {
  return new HttpAgent({ url: `${BASE}/agui/site`, headers, threadId: randomUUID(), ...options });
}

/** Run an agent, and return the types of the events that it has seen. */
async function run(agent, parameters = {}) {
  const seen = [];
  await agent.runAgent(parameters, { onEvent: ({ event }) => void seen.push(event) });
  return seen;
}

const say = (agent, content) => agent.addMessage({ id: randomUUID(), role: "user", content });
const textsOf = (agent) =>
  agent.messages.filter((message) => message.role === "assistant" && message.content).map((message) => message.content);
const callsOf = (agent) => agent.messages.flatMap((message) => message.toolCalls ?? []);

test("a run brings text, tools of the service with their results, and the state that was sent", async () => {
  const agent = newAgent({ initialState: { cart: 2 } });
  say(agent, SCRIPTS.read);
  const seen = await run(agent);
  const types = seen.map((event) => event.type);
  assert.equal(types[0], "RUN_STARTED");
  assert.equal(types.at(-1), "RUN_FINISHED");
  assert.ok(types.includes("STATE_SNAPSHOT") && types.includes("TOOL_CALL_RESULT"), types.join());
  assert.deepEqual(textsOf(agent), ["I have read it."]);
  assert.deepEqual(agent.state, { cart: 2 });
  say(agent, SCRIPTS.text);
  await run(agent);
  assert.deepEqual(textsOf(agent), ["I have read it.", "Nothing to do."]);
});

test("calls of the front end end a run, and their results begin the next one", async () => {
  const agent = newAgent();
  say(agent, SCRIPTS.locate);
  const seen = await run(agent, { tools: [LOCATE] });
  const calls = callsOf(agent);
  assert.deepEqual(
    calls.map((call) => JSON.parse(call.function.arguments).of),
    ["user", "shop"],
  );
  assert.deepEqual(seen.at(-1).outcome, { type: "success", pendingToolCallIds: calls.map((call) => call.id) });
  for (const call of calls) {
    agent.addMessage({
      id: randomUUID(),
      role: "tool",
      toolCallId: call.id,
      content: JSON.stringify({ city: "Ghent" }),
    });
  }
  await run(agent, { tools: [LOCATE] });
  assert.deepEqual(textsOf(agent), ["I look.", "Two streets away."]);
  assert.equal(callsOf(agent).length, 2);
});

for (const approved of [true, false]) {
  test(`an interrupt asks for an approval, which is ${approved ? "given" : "refused"} by the next run`, async () => {
    const agent = newAgent();
    say(agent, SCRIPTS.approval);
    const seen = await run(agent);
    const { outcome } = seen.at(-1);
    assert.equal(outcome.type, "interrupt", JSON.stringify(seen.at(-1)));
    const [interrupt] = outcome.interrupts;
    assert.equal(interrupt.reason, "tool_call");
    assert.equal(interrupt.toolCallId, callsOf(agent)[0].id);
    const resume = [{ interruptId: interrupt.id, status: "resolved", payload: { approved } }];
    const after = await run(agent, { resume });
    assert.equal(after.at(-1).type, "RUN_FINISHED", JSON.stringify(after.at(-1)));
    assert.deepEqual(textsOf(agent), ["Decided."]);
    const result = after.find((event) => event.type === "TOOL_CALL_RESULT");
    assert.equal(/denied/.test(result.content), !approved, result.content);
  });
}

test("a failure ends the run with an error, and a refusal has a status", async () => {
  const agent = newAgent();
  say(agent, SCRIPTS.failure);
  const failed = await run(agent).catch((error) => error);
  const isError = failed instanceof Error || failed.at(-1).type === "RUN_ERROR";
  assert.ok(isError, JSON.stringify(failed));
  const nobody = new HttpAgent({ url: `${BASE}/agui/nobody`, headers, threadId: randomUUID() });
  say(nobody, "Hello");
  const refused = await nobody.runAgent().catch((error) => error);
  assert.match(String(refused?.message), /404/);
});

test("CopilotKit's client runs the agent without a runtime, with a tool of the front end", async () => {
  const { CopilotKitCore } = await import("@copilotkit/core");
  const agent = newAgent();
  const ran = [];
  const core = new CopilotKitCore({
    agents__unsafe_dev_only: { site: agent },
    tools: [
      {
        name: "locate",
        description: LOCATE.description,
        handler: async ({ of }) => {
          ran.push(of);
          return { city: `near ${of}` };
        },
      },
    ],
  });
  say(agent, SCRIPTS.locate);
  await core.runAgent({ agent });
  assert.deepEqual(ran, ["user", "shop"]);
  assert.equal(textsOf(agent).at(-1), "Two streets away.");
});
