import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDay, formatTime } from "../src/view/format.js";

const NOW = new Date(2026, 10, 29, 12, 0);

test("a moment has its date unless it is today, and a day its year unless it is this one's", () => {
  assert.match(formatTime(new Date(2026, 10, 29, 15, 30), "de", NOW), /^15:30$/);
  assert.match(formatTime(new Date(2026, 11, 1, 15, 30), "de", NOW), /1\.12\.2026, 15:30/);
  assert.equal(formatDay(new Date(2026, 9, 2), "de", NOW), "2. Okt.");
  assert.equal(formatDay(new Date(2025, 9, 2), "de", NOW), "2. Okt. 2025");
});

test("what is no date is shown as such", () => {
  assert.deepEqual([formatTime("soon", "en"), formatDay("soon", "en")], ["…", ""]);
});
