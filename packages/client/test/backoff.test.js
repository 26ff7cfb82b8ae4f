import assert from "node:assert/strict";
import { test } from "node:test";
import { callWithRetries, retryDelay, wait, waitUntilOnline } from "../src/backoff.js";
import { InvalidRequestError, UnreachableError } from "../src/errors.js";

test("the limit of a delay doubles until it is ten seconds, and all below it is possible", () => {
  const limits = [1, 2, 3, 7, 100].map((failures) => retryDelay(failures, 0, () => 1));
  assert.deepEqual(limits, [200, 400, 800, 10_000, 10_000]);
  assert.equal(
    retryDelay(5, 0, () => 0),
    0,
  );
});

test("the service's Retry-After is waited at least, up to two minutes", () => {
  assert.equal(
    retryDelay(1, 3000, () => 0),
    3000,
  );
  assert.equal(
    retryDelay(1, 3_600_000, () => 0),
    120_000,
  );
});

test("an operation is tried again while its failure may pass", async () => {
  const failures = [new UnreachableError("no"), new UnreachableError("no")];
  const waits = [];
  const operation = async () => {
    if (failures.length > 0) throw failures.pop();
    return "done";
  };
  assert.equal(await callWithRetries(operation, async (ms) => void waits.push(ms)), "done");
  assert.equal(waits.length, 2);
});

test("a failure that will not pass is raised at once, any other after some attempts", async () => {
  for (const [error, attempts] of [
    [new InvalidRequestError("no"), 1],
    [new UnreachableError("no"), 6],
  ]) {
    let count = 0;
    const operation = async () => {
      count += 1;
      throw error;
    };
    await assert.rejects(
      callWithRetries(operation, async () => {}),
      error,
    );
    assert.equal(count, attempts);
  }
});

test("waiting ends with the signal's reason", async () => {
  const controller = new AbortController();
  const waiting = wait(60_000, controller.signal);
  controller.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
  await assert.rejects(wait(1, controller.signal), /stopped/);
});

test("being offline is waited out until the browser says that it is online", async (t) => {
  const target = new EventTarget();
  const browser = setGlobals(t, {
    navigator: { onLine: false },
    addEventListener: target.addEventListener.bind(target),
  });
  const ready = waitUntilOnline(wait);
  browser.navigator.onLine = true;
  target.dispatchEvent(new Event("online"));
  await ready;
});

/** Give the test a browser's globals. */
function setGlobals(t, values) {
  for (const [name, value] of Object.entries(values)) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    t.after(() => (before ? Object.defineProperty(globalThis, name, before) : delete globalThis[name]));
  }
  return values;
}
