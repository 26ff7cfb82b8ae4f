import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidResponseError } from "../src/errors.js";
import { EventParser } from "../src/ndjson.js";

const encode = (text) => new TextEncoder().encode(text);

test("events are the same wherever the bytes are cut", () => {
  const bytes = encode('{"seq":1,"text":"Käse 🧀"}\n\n{"seq":2}\n');
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const parser = new EventParser();
    const events = [...parser.push(bytes.subarray(0, cut)), ...parser.push(bytes.subarray(cut))];
    assert.deepEqual(events, [{ seq: 1, text: "Käse 🧀" }, { seq: 2 }]);
  }
});

test("blank lines are no events, and a last line without its end is none either", () => {
  assert.deepEqual([...new EventParser().push(encode('\n \r\n{"seq":1}\r\n{"seq":2}'))], [{ seq: 1 }]);
});

test("a line that is no JSON object is an error that may pass", () => {
  for (const line of ["<html>", "[]", "null", "1"]) {
    const isRetryable = (error) => error instanceof InvalidResponseError && error.retryable;
    assert.throws(() => [...new EventParser().push(encode(`${line}\n`))], isRetryable);
  }
});

test("a line of many pieces takes time in proportion to its length", () => {
  const parser = new EventParser();
  const push = (bytes) => [...parser.push(bytes)];
  push(encode('{"text":"'));
  const piece = encode("x".repeat(64));
  for (let index = 0; index < 50_000; index += 1) push(piece);
  assert.equal(push(encode('"}\n'))[0].text.length, 3_200_000);
});

test("events before a line that is none have arrived", () => {
  const events = new EventParser().push(encode('{"seq":1}\n{"seq":2}\n<html>\n'));
  assert.deepEqual([events.next().value, events.next().value], [{ seq: 1 }, { seq: 2 }]);
  assert.throws(() => events.next(), InvalidResponseError);
});

test("a line that never ends is an error before memory is full", () => {
  const parser = new EventParser();
  const piece = encode("x".repeat(8_000_000));
  const push = () => [...parser.push(piece)];
  for (let pieces = 0; pieces < 8; pieces += 1) push();
  assert.throws(push, /does not end/);
});
