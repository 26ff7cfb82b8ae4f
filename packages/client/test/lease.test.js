import assert from "node:assert/strict";
import { test } from "node:test";
import { withLease } from "../src/lease.js";

const never = new AbortController().signal;
const next = () => new Promise((resolve) => setImmediate(resolve));

/** Give the test a browser's `navigator.locks`. */
function setLocks(t, locks) {
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true });
  t.after(() => (before ? Object.defineProperty(globalThis, "navigator", before) : delete globalThis.navigator));
}

async function takeTurns() {
  const order = [];
  let release = () => {};
  const first = withLease("a", never, async () => {
    order.push("first");
    await new Promise((resolve) => {
      release = resolve;
    });
  });
  await next();
  const second = withLease("a", never, async () => void order.push("second"));
  const other = withLease("b", never, async () => void order.push("of another name"));
  await next();
  await next();
  order.push("released");
  release();
  await Promise.all([first, second, other]);
  return order;
}

test("one holds a lease of a name at a time, and the next one gets it", async (t) => {
  setLocks(t, undefined);
  assert.deepEqual(await takeTurns(), ["first", "of another name", "released", "second"]);
});

test("in a page that may have no locks the lease holds within the page", async (t) => {
  setLocks(t, { request: async () => Promise.reject(new DOMException("Denied", "SecurityError")) });
  assert.deepEqual(await takeTurns(), ["first", "of another name", "released", "second"]);
});

test("a lease that is no longer wanted is not held", async (t) => {
  setLocks(t, undefined);
  const controller = new AbortController();
  let release = () => {};
  const first = withLease("a", never, () => new Promise((resolve) => (release = resolve)));
  const second = withLease("a", controller.signal, () => assert.fail("it is held"));
  await next();
  controller.abort();
  release();
  await Promise.all([first, second]);
});

test("an error of the holder is the holder's, and frees the lease", async (t) => {
  const request = async (_name, _options, hold) => hold();
  for (const locks of [undefined, { request }]) {
    setLocks(t, locks);
    await assert.rejects(
      withLease("a", never, async () => {
        throw new Error("mine");
      }),
      /mine/,
    );
    let isHeld = false;
    await withLease("a", never, async () => {
      isHeld = true;
    });
    assert.ok(isHeld);
  }
});
