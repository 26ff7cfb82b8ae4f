/** What people, tabs and services do in any order: random histories, each repeatable by its seed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTurn, fakeClient, loaded, refused, settled } from "./support/fake-client.js";

const HISTORIES = 200;
const STEPS = 30;

function randomOf(seed) {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 3266489917) | 0;
    return ((state >>> 8) & 0xffff) % below;
  };
}

/** A client whose requests a history answers, fails or leaves waiting. */
function scriptedClient(random) {
  const waiting = [];
  const turns = [];
  const later = (make) =>
    new Promise((resolve, reject) => {
      const settle = () => {
        const luck = random(6);
        if (luck === 0)
          reject(Object.assign(refused([0, 401, 404, 409, 500][random(5)], "Refused."), { idempotencyKey: "k" }));
        else resolve(make());
      };
      if (random(3) === 0) waiting.push(settle);
      else setImmediate(settle);
    });
  const begin = (id = `b${turns.length + 1}`) => {
    const turn = new FakeTurn(id);
    turn.seq = 0;
    turn.cancel = () => later(() => ({}));
    turns.push(turn);
    return turn;
  };
  let read = 0;
  const conversation = (id) => ({
    id,
    title: "A title",
    messages: [{ id: `m-${read++}`, role: "user", content: [{ kind: "text", text: "Go" }] }],
    ...(random(3) === 0 && { activeTurn: { bridgeId: `b${random(5)}` } }),
  });
  const client = fakeClient({
    start: () => later(begin),
    undo: () => later(begin),
    follow: begin,
    journal: () => later(() => [{ state: "applied" }]),
  });
  client.conversations.get = (id) =>
    later(() => ({ conversation: conversation(id), nextCursor: random(2) ? "older" : undefined }));
  client.conversations.create = () => later(() => ({ id: `conv${random(3)}`, title: "" }));
  client.conversations.remove = () => later(() => ({}));
  return { client, turns, waiting };
}

const EVENTS = [
  (n) => ({ type: "text", text: `word ${n} ` }),
  (n) => ({ type: "toolCall", toolCallId: `c${n % 4}`, toolName: "insertHtml", input: {} }),
  (n) => ({ type: "toolRequest", toolCallId: `c${n % 4}`, toolName: "insertHtml" }),
  (n) => ({ type: "toolResult", toolCallId: `c${n % 4}`, ok: n % 3 > 0 }),
  () => ({ type: "logRewound", seq: undefined }),
  () => ({ type: "roundRetracted" }),
  () => ({ type: "held", until: "2030-01-01T00:00:00Z", seq: undefined }),
  () => ({ type: "done" }),
  () => ({ type: "error", message: "No.", retryable: true }),
  () => ({ type: "cancelled" }),
];

function act(session, { turns, waiting }, random) {
  const item = session.state.items.filter(({ kind }) => kind === "turn").at(-1 - random(2));
  const turn = turns.at(-1 - random(2));
  const ignore = (promise) => promise?.catch?.(() => {});
  const actions = [
    () => ignore(session.send(["Hello", "Go", "Again"][random(3)])),
    () => ignore(session.send("Hello")),
    () => ignore(session.stop()),
    () => item && ignore(session.undo(item)),
    () => item && ignore(session.retry(item)),
    () => session.startNewChat(),
    () => ignore(session.openConversation(`conv${random(3)}`)),
    () => ignore(session.loadOlder()),
    () => ignore(session.followAgain()),
    () => ignore(session.load()),
    () => ignore(session.removeConversation(session.state.conversation?.id ?? "none")),
    () => session.dismissProblem(),
    ...Array.from({ length: 8 }, () => () => {
      if (!turn) return;
      const event = EVENTS[random(EVENTS.length)](random(9));
      turn.seq += 1;
      turn.send({ seq: turn.seq, ...event });
      if (["done", "error", "cancelled"].includes(event.type)) turn.send("end");
    }),
    () => turn?.send(refused([0, 401][random(2)], "The turn was lost.")),
    ...Array.from({ length: 4 }, () => () => waiting.splice(random(waiting.length || 1), 1)[0]?.()),
  ];
  actions[random(actions.length)]();
}

test("whatever happens in whatever order, the session says what is so, and can be used on", async () => {
  const unhandled = [];
  const note = (error) => unhandled.push(error);
  process.on("unhandledRejection", note);
  for (let seed = 1; seed <= HISTORIES; seed += 1) {
    const random = randomOf(seed);
    const world = scriptedClient(random);
    const session = await loaded(world.client);
    for (let step = 0; step < STEPS; step += 1) {
      act(session, world, random);
      if (random(2)) await settled();
      const keys = session.state.items.map(({ key }) => key);
      assert.equal(new Set(keys).size, keys.length, `seed ${seed}: an item is shown twice`);
      const { running, items } = session.state;
      assert.ok(!running || items.includes(running), `seed ${seed}: what runs is shown`);
    }
    for (let round = 0; round < 60; round += 1) {
      for (const settle of world.waiting.splice(0)) settle();
      for (const turn of world.turns) turn.send({ seq: 1000, type: "done" }, "end");
      await settled();
    }
    const { running, isStarting, isLoading } = session.state;
    assert.deepEqual([seed, running, isStarting, isLoading], [seed, null, false, false]);
    for (const item of session.state.items)
      if (item.kind === "turn") assert.ok(item.view.end || item.isLost, `seed ${seed}: a turn seems to work for ever`);
    session.close();
  }
  process.off("unhandledRejection", note);
  assert.deepEqual(unhandled, []);
});
