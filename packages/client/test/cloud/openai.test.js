/** The official client of OpenAI for Node.js talks to an agent: whole, streamed, with its own tools, and as responses. */

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { scripted } from "../support/cloud.js";

const { FERMATA_URL, FERMATA_TOKEN } = process.env;
const client = new OpenAI({ baseURL: `${FERMATA_URL}/v1`, apiKey: FERMATA_TOKEN, maxRetries: 0 });
const WEATHER = {
  name: "get_weather",
  description: "Tells the weather.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
};
const user = (content) => ({ role: "user", content });

test("agents are models", async () => {
  const { data } = await client.models.list();
  assert.ok(data.some(({ id }) => id === "site"));
});

test("a completion is whole or streamed", async () => {
  const messages = [{ role: "system", content: "Be brief." }, user(scripted("text"))];
  const whole = await client.chat.completions.create({ model: "site", messages });
  assert.equal(whole.choices[0].message.content, "Nothing to do.");
  assert.ok(whole.usage.total_tokens > 0);
  const stream = await client.chat.completions.create({ model: "site", messages, stream: true });
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  assert.equal(text, "Nothing to do.");
});

test("tools of the client are run by its own helper until the answer is there", async () => {
  const cities = [];
  const runner = client.chat.completions.runTools({
    model: "site",
    stream: true,
    messages: [user(scripted("weather"))],
    tools: [
      {
        type: "function",
        function: {
          ...WEATHER,
          parse: JSON.parse,
          function: ({ city }) => {
            cities.push(city);
            return { sky: "sun" };
          },
        },
      },
    ],
  });
  assert.equal(await runner.finalContent(), "Sun in both.");
  assert.deepEqual(cities.sort(), ["Bern", "Rome"]);
});

test("responses are streamed, name the one before, and call tools", async () => {
  const tools = [{ type: "function", ...WEATHER }];
  const stream = client.responses.stream({ model: "site", input: scripted("weather"), tools });
  const first = await stream.finalResponse();
  const calls = first.output.filter(({ type }) => type === "function_call");
  assert.equal(calls.length, 2);
  const second = await client.responses.create({
    model: "site",
    previous_response_id: first.id,
    input: calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: "sun" })),
  });
  assert.equal(second.output_text, "Sun in both.");
});

test("errors are those that the client knows", async () => {
  const hello = { messages: [user("Hello")] };
  await assert.rejects(client.chat.completions.create({ model: "nobody", ...hello }), OpenAI.NotFoundError);
  const stranger = client.withOptions({ apiKey: "wrong" });
  await assert.rejects(stranger.chat.completions.create({ model: "site", ...hello }), OpenAI.AuthenticationError);
});
