import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryReceipts, storageReceipts } from "../src/receipts.js";

/** A `Storage` in memory. */
function newStorage() {
  const values = new Map();
  return {
    get length() {
      return values.size;
    },
    key: (index) => [...values.keys()][index] ?? null,
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
    removeItem: (key) => void values.delete(key),
  };
}

for (const [name, make] of [
  ["memory", memoryReceipts],
  ["localStorage", () => storageReceipts(newStorage())],
]) {
  test(`receipts in ${name} are kept until their turn ends or they are old`, async () => {
    const receipts = make();
    assert.equal(await receipts.get("t1 a"), undefined);
    await receipts.set("t1 a", { call: "x", at: 100 });
    await receipts.set("t1 a", { call: "x", at: 100, result: { ok: true } });
    await receipts.set("t2 a", { call: "y", at: 10 });
    await receipts.set("t3 a", { call: "z", at: 100 });
    assert.deepEqual(await receipts.get("t1 a"), { call: "x", at: 100, result: { ok: true } });
    await receipts.clear("t1 ", 50);
    assert.deepEqual(await Promise.all(["t1 a", "t2 a", "t3 a"].map(async (key) => (await receipts.get(key))?.call)), [
      undefined,
      undefined,
      "z",
    ]);
  });
}

test("receipts in localStorage leave the page's own members alone", async () => {
  const storage = newStorage();
  storage.setItem("theme", "dark");
  await storageReceipts(storage).clear("", Number.POSITIVE_INFINITY);
  assert.equal(storage.getItem("theme"), "dark");
});
