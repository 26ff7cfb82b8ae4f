import assert from "node:assert/strict";
import { test } from "node:test";
import { callsOf, emptyTurn, foldEvent, isAwaitingDecision } from "../src/state/turn-view.js";

const fold = (...events) =>
  events.reduce((view, event, index) => foldEvent(view, { seq: index + 1, ...event }), emptyTurn());
const ready = { type: "bridgeReady", bridgeId: "b1" };
const call = { type: "toolCall", toolCallId: "c1", toolName: "insertHtml", input: { html: "<p>" } };
const request = { type: "toolRequest", toolCallId: "c1", toolName: "insertHtml", effectKey: "b1/1/0" };

test("text and reasoning of one response are one round", () => {
  const view = fold(
    ready,
    { type: "reasoning", text: "Hm. " },
    { type: "text", text: "I " },
    { type: "text", text: "add it." },
  );
  assert.equal(view.bridgeId, "b1");
  assert.deepEqual(
    view.rounds.map(({ text, reasoning }) => [reasoning, text]),
    [["Hm. ", "I add it."]],
  );
});

test("text behind a tool's result begins a new round", () => {
  const result = { type: "toolResult", toolCallId: "c1", toolName: "insertHtml", ok: true };
  const view = fold(ready, { type: "text", text: "One." }, call, request, result, { type: "text", text: "Two." });
  assert.deepEqual(
    view.rounds.map((round) => round.text),
    ["One.", "Two."],
  );
  assert.deepEqual(
    callsOf(view).map(({ state, isInEditor }) => [state, isInEditor]),
    [["ok", true]],
  );
});

test("a call that failed says why, and whether the page had changed", () => {
  const result = {
    type: "toolResult",
    toolCallId: "c1",
    toolName: "insertHtml",
    ok: false,
    error: "Changed.",
    conflict: true,
  };
  const [failed] = callsOf(fold(ready, call, request, result));
  assert.deepEqual([failed.state, failed.error, failed.isConflict], ["failed", "Changed.", true]);
});

test("a retracted round is gone, and the one before stays", () => {
  const result = { type: "toolResult", toolCallId: "c1", toolName: "insertHtml", ok: true };
  const view = fold(
    ready,
    { type: "text", text: "One." },
    call,
    result,
    { type: "text", text: "Tw" },
    { type: "roundRetracted", round: 2 },
  );
  assert.deepEqual(
    view.rounds.map((round) => round.text),
    ["One."],
  );
});

test("an event that was seen changes nothing", () => {
  const view = fold(ready, { type: "text", text: "One." });
  assert.equal(foldEvent(view, { type: "text", text: "One.", seq: 2 }), view);
});

test("nothing changes after the end", () => {
  const view = fold(ready, { type: "done" });
  assert.equal(foldEvent(view, { type: "text", text: "late", seq: 9 }), view);
});

test("a rewound log begins again", () => {
  const view = foldEvent(fold(ready, { type: "text", text: "One." }), { type: "logRewound" });
  assert.deepEqual([view.seq, view.rounds, view.bridgeId], [0, [], "b1"]);
});

test("a hold ends with the next event", () => {
  const held = foldEvent(fold(ready), { type: "held", until: "2030-01-01T00:00:00Z", retryAfter: 30 });
  assert.ok(held.held);
  assert.equal(foldEvent(held, { type: "text", text: "On.", seq: 5 }).held, undefined);
});

test("warnings are kept in order", () => {
  const view = fold(ready, { type: "warning", message: "a" }, { type: "warning", message: "b" });
  assert.deepEqual(
    view.warnings.map(({ message }) => message),
    ["a", "b"],
  );
});

test("an unknown event only counts", () => {
  assert.deepEqual(fold(ready, { type: "new" }).seq, 2);
});

test("a result belongs to the newest call with its id, and views that were seen before stay as they were", () => {
  const result = { type: "toolResult", toolCallId: "c1", toolName: "insertHtml", ok: true };
  const before = fold(ready, call, result, call);
  const after = foldEvent(before, { ...result, ok: false, error: "No.", seq: 5 });
  const other = foldEvent(before, { ...call, toolCallId: "c2", seq: 5 });
  const states = (view) => callsOf(view).map(({ id, state }) => `${id} ${state}`);
  assert.deepEqual(states(before), ["c1 ok", "c1 pending"]);
  assert.deepEqual(states(after), ["c1 ok", "c1 failed"]);
  assert.deepEqual(states(other), ["c1 ok", "c1 pending", "c2 pending"]);
});

const asked = {
  type: "approvalRequested",
  approvalId: "a1",
  toolCallId: "c1",
  toolName: "insertHtml",
  input: { html: "<p>" },
  inputHash: "h1",
  description: "Adds elements.",
  reasons: ["rule"],
  deadline: "2026-12-01T00:00:00Z",
};
const decided = { type: "approvalDecided", approvalId: "a1", toolCallId: "c1", toolName: "insertHtml" };

test("a call that needs a person waits, until the decision says how it went on", () => {
  const [waiting] = callsOf(fold(ready, call, asked));
  assert.equal(isAwaitingDecision(waiting), true);
  assert.deepEqual([waiting.approval.id, waiting.approval.inputHash, waiting.approval.state], ["a1", "h1", "waiting"]);
  const denial = { ...decided, outcome: "denied", approved: false, reason: "Not today." };
  const [denied] = callsOf(fold(ready, call, asked, denial));
  assert.equal(isAwaitingDecision(denied), false);
  assert.deepEqual([denied.state, denied.approval.state, denied.approval.reason], ["pending", "denied", "Not today."]);
  const [late] = callsOf(fold(ready, call, asked, { ...decided, outcome: "expired", approved: false }));
  assert.equal(late.approval.state, "expired");
});

test("each of several calls that wait gets its own decision, in any order", () => {
  const second = { ...call, toolCallId: "c2" };
  const view = fold(
    ready,
    call,
    second,
    asked,
    { ...asked, approvalId: "a2", toolCallId: "c2" },
    { ...decided, approvalId: "a2", toolCallId: "c2", outcome: "denied" },
    { ...decided, outcome: "approved", input: { html: "<h1>" } },
  );
  const approvals = callsOf(view).map(({ approval }) => [approval.id, approval.state, approval.changedInput]);
  assert.deepEqual(approvals, [
    ["a1", "approved", { html: "<h1>" }],
    ["a2", "denied", undefined],
  ]);
});

test("a decision about a call that nobody asked about changes nothing", () => {
  const [known] = callsOf(fold(ready, call, { ...decided, outcome: "approved" }));
  assert.equal(known.approval, undefined);
});
