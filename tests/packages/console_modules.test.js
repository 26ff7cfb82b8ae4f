/** What the console computes: days of a zone, CSV, the timeline of a turn, names of files. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { listDifferences } from "../../console/src/content/content-difference.js";
import { listLimits } from "../../console/src/content/field-limits.js";
import { makeImageStore } from "../../console/src/content/image-store.js";
import { drawDocumentId, findSingleId } from "../../console/src/content/new-document.js";
import { PagePlaces } from "../../console/src/content/page-places.js";
import { ReviewStore } from "../../console/src/content/review-store.js";
import { findRefusal, UploadQueue } from "../../console/src/content/upload-queue.js";
import { compareLines } from "../../console/src/content/line-difference.js";
import { toLines } from "../../console/src/content/value-lines.js";
import { compareWords } from "../../console/src/content/word-difference.js";
import { decodeText } from "../../console/src/sites/decode-text.js";
import { fileNameOf, toHtmlFile } from "../../console/src/sites/page-files.js";
import { readHeaderLines, readRegistration } from "../../console/src/tool-registration.js";
import { roundsOf } from "../../console/src/turn-timeline.js";
import { listDays, startOfPeriod, usageToCsv } from "../../console/src/usage-period.js";

import { chooseLanguage, WORDS } from "../../console/src/words/index.js";

process.env.TZ = "Europe/Berlin";

test("a period begins with a day of the viewer's zone, also where the clocks change", () => {
  const now = new Date("2026-10-26T22:30:00Z"); // 23:30 in Berlin, two days after the change
  assert.equal(startOfPeriod(1, now).toISOString(), "2026-10-25T23:00:00.000Z");
  assert.equal(startOfPeriod(2, now).toISOString(), "2026-10-24T22:00:00.000Z");
  assert.deepEqual(listDays(3, now), ["2026-10-24", "2026-10-25", "2026-10-26"]);
});

test("a name in the CSV is neither a formula nor breaks a row", () => {
  const totals = { promptTokens: 1, completionTokens: 2, cacheReadTokens: 0, cacheCreationTokens: 0, chatCount: 1 };
  const row = { ...totals, costUsd: 0.5 };
  const byUser = ['=HYPERLINK("x")', "a,b", 'say "hi"\nthere'].map((userLabel) => ({ ...row, userLabel }));
  const csv = usageToCsv({ totals: row, byDay: [], byScope: [], byModel: [], byUser });
  assert.ok(csv.includes(`user,"'=HYPERLINK(""x"")",1,2,0,0,1,0.5\r\n`));
  assert.ok(csv.includes('user,"a,b",1'));
  assert.ok(csv.includes('user,"say ""hi""\nthere",1'));
});

test("a name in the CSV is no formula in a spreadsheet that takes other signs for the ends of cells", () => {
  const totals = { promptTokens: 1, completionTokens: 2, cacheReadTokens: 0, cacheCreationTokens: 0, chatCount: 1 };
  const row = { ...totals, costUsd: 0.5 };
  const names = ["a;=1+1", "a\t@SUM(A1)", 'a,"=1"', "＝1+1", "a\n-1", "ada-lovelace", "2026-11-28", "a = b"];
  const byUser = names.map((userLabel) => ({ ...row, userLabel }));
  const cells = usageToCsv({ totals: row, byDay: [], byScope: [], byModel: [], byUser });
  for (const harmful of [";=", "\t@", '""=', '"＝', "\n-", ",＝"]) assert.ok(!cells.includes(harmful), harmful);
  for (const harmless of ["ada-lovelace", "2026-11-28", "a = b"])
    assert.ok(cells.includes(`user,${harmless},`), harmless);
});

test("calls that are open when a turn ends were not carried out", () => {
  const at = new Date(0).toISOString();
  const [round] = roundsOf([
    { seq: 1, at, type: "roundStarted", round: 1 },
    { seq: 2, at, type: "toolCall", toolCallId: "a", toolName: "insertHtml", input: {} },
    { seq: 3, at, type: "cancelled" },
  ]);
  assert.deepEqual(
    round.tools.map(({ state }) => state),
    ["dropped"],
  );
});

test("a file is read in the encoding that it has, whatever it says", () => {
  const bytes = (text, encoding) => new Uint8Array(Buffer.from(text, encoding));
  assert.equal(decodeText(bytes("Müsli €", "utf8")), "Müsli €");
  assert.equal(decodeText(bytes("\uFEFFMüsli", "utf16le")), "Müsli");
  assert.equal(decodeText(bytes("\uFEFFMüsli", "utf8")), "Müsli");
  assert.equal(decodeText(bytes("M\u00FCsli", "latin1")), "Müsli");
  assert.equal(decodeText(bytes('<meta charset="iso-8859-2">\u00E8', "latin1")), '<meta charset="iso-8859-2">č');
  assert.equal(decodeText(bytes('<meta charset="utf-16">Müsli', "utf8")), '<meta charset="utf-16">Müsli');
  assert.equal(decodeText(bytes('<meta charset="no-such">Müsli', "utf8")), '<meta charset="no-such">Müsli');
  assert.equal(decodeText(bytes('<meta charset="utf-8">M\u00FCsli', "latin1")), '<meta charset="utf-8">Müsli');
});

test("all languages have the same words, and the first that a person reads is chosen", () => {
  const kinds = (value) =>
    value && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, kinds(member)]))
      : typeof value;
  for (const language of Object.values(WORDS)) assert.deepEqual(kinds(language), kinds(WORDS.en));
  assert.deepEqual(chooseLanguage(["fr", "de-AT", "en"]), { tag: "de-AT", name: "de" });
  assert.deepEqual(chooseLanguage(["fr"]), { tag: "en", name: "en" });
  assert.deepEqual(chooseLanguage([]), { tag: "en", name: "en" });
});

test("a timeline has the times of rounds and calls, and counts a round that was taken over once", () => {
  const at = (ms) => new Date(ms).toISOString();
  const rounds = roundsOf([
    { seq: 1, at: at(0), type: "bridgeReady" },
    { seq: 2, at: at(10), type: "roundStarted", round: 1 },
    { seq: 3, at: at(20), type: "roundStarted", round: 1 },
    { seq: 4, at: at(50), type: "text", characters: 7 },
    { seq: 5, at: at(60), type: "toolCall", toolCallId: "a", toolName: "insertHtml", input: {} },
    { seq: 6, at: at(160), type: "toolResult", toolCallId: "a", ok: false, error: "no" },
    { seq: 7, at: at(170), type: "roundStarted", round: 2 },
    { seq: 8, at: at(200), type: "done" },
  ]);
  assert.deepEqual(
    rounds.map(({ round, milliseconds, firstByte }) => [round, milliseconds, firstByte]),
    [
      [1, 40, 30],
      [2, 30, undefined],
    ],
  );
  assert.deepEqual(
    rounds[0].tools.map(({ state, milliseconds, error }) => [state, milliseconds, error]),
    [["failed", 100, "no"]],
  );
});

test("an exported page cannot be left by its title or its styles", () => {
  const file = toHtmlFile({ title: "</title><script>", body: "<p>x</p>", css: "a{}</style><script>" });
  assert.ok(!file.includes("</title><script>"));
  assert.ok(!file.includes("</style><script>"));
  assert.equal(fileNameOf("../Über uns!"), "u-ber-uns");
  assert.equal(fileNameOf("…"), "page");
});

test("an exported page keeps its own head, and says that it is in UTF-8", () => {
  const head = '<meta charset="iso-8859-1"/><title>Café</title><link rel="stylesheet" href="https://fonts.example/x"/>';
  const file = toHtmlFile({ title: "x", head, body: "<body class=a></body>", css: "", attributes: { lang: "fr" } });
  assert.equal(file.match(/<title/g)?.length, 1);
  assert.equal(file.match(/charset/g)?.length, 1);
  for (const kept of ['<html lang="fr">', 'charset="utf-8"', "fonts.example", "<body class=a>", "viewport"])
    assert.ok(file.includes(kept), kept);
});

test("a tool is registered from its manifest and an address, or from the whole file", () => {
  const manifest = { name: "pim.getProduct", inputSchema: { type: "object" } };
  const endpoint = "https://pim.example/get";
  const alone = readRegistration(JSON.stringify(manifest), endpoint, {}, false);
  assert.deepEqual(alone, { manifest, endpoint });
  const file = JSON.stringify({ manifest, endpoint, scopes: ["site"], staticHeaders: { a: "1" } });
  const changed = readRegistration(file, "", { b: "2" }, true);
  assert.deepEqual(changed, { manifest, endpoint, scopes: ["site"], staticHeaders: { a: "1", b: "2" }, replace: true });
  assert.throws(() => readRegistration(JSON.stringify(manifest), "", {}, false), /address/);
  for (const text of ["{", "[]", "null", '"x"'])
    assert.throws(() => readRegistration(text, endpoint, {}, false), /not valid JSON/);
});

test("headers are read one a line, and what is none is not repeated whole, because it may be a secret", () => {
  assert.deepEqual(readHeaderLines("x-api-key: a:b\n\n  Accept:  text/plain "), {
    "x-api-key": "a:b",
    Accept: "text/plain",
  });
  assert.throws(
    () => readHeaderLines(`${"s".repeat(60)}`),
    ({ message }) => !message.includes("s".repeat(21)),
  );
});

test("words that have changed are marked, and the parts of a text are the text", () => {
  const { before, after } = compareWords("Rye bread, baked at night.", "Dark rye bread, baked at dawn.");
  const marked = (parts) => parts.filter(({ isChanged }) => isChanged).map(({ text }) => text);
  const whole = (parts) => parts.map(({ text }) => text).join("");
  assert.deepEqual(
    [marked(before), marked(after)],
    [
      ["Rye", "night."],
      ["Dark", "rye ", "dawn."],
    ],
  );
  assert.equal(whole(before), "Rye bread, baked at night.");
  assert.equal(whole(after), "Dark rye bread, baked at dawn.");
});

test("texts of 100 KB without a word in common are compared at once, as a whole", () => {
  const [old, now] = ["a ", "b "].map((word, which) => `same ${`${word}${which}`.repeat(30_000)} end`);
  const { before, after } = compareWords(old, now);
  assert.ok(before.length + after.length < 10);
  assert.equal(after.map(({ text }) => text).join(""), now);
});

test("of a model each field is compared, of other documents an object as a whole", () => {
  const fields = { title: { type: "string" } };
  const changed = { ...fields, subtitle: { type: "string" } };
  const model = (own) => ({ model: "model", id: "post", locales: { data: { kind: "collection", fields: own } } });
  assert.deepEqual(
    listDifferences(model(fields), model(changed)).map(({ field }) => field),
    ["data.fields.subtitle"],
  );
  const entry = (value) => ({ model: "post", locales: { data: { fields: value } } });
  assert.deepEqual(
    listDifferences(entry(fields), entry(changed)).map(({ field }) => field),
    ["data.fields"],
  );
});

test("what a field may hold is said in a few words", () => {
  const options = Array.from({ length: 20 }, (_, index) => `o${index}`);
  assert.deepEqual(listLimits({ model: ["a", "b"] }), ["→ a, b"]);
  assert.deepEqual(listLimits({ min: 0, max: null, default: 3, items: { type: "url" } }), ["≥ 0", "[url]", "= 3"]);
  assert.match(listLimits({ options })[0], /o7 \| …$/);
  assert.deepEqual(listLimits({ model: [], options: [], pattern: "" }), []);
});

test("files are stored one after another, one that fails can be tried again, and some are not sent at all", async () => {
  const sent = [];
  let isDown = true;
  const send = async ({ name }) => {
    sent.push(name);
    if (name === "b" && isDown) throw new Error("no network");
    return { id: name };
  };
  const queue = new UploadQueue(send, () => {});
  const file = (name, type = "image/png", size = 9) => ({ name, type, size });
  const [text, large] = [file("c", "text/html"), file("d", "image/png", 15_000_001)];
  const running = queue.add([file("a"), file("b"), text, large]);
  queue.add([file("e")]);
  await running;
  const states = () => queue.uploads.map(({ state }) => state);
  assert.deepEqual(states(), ["stored", "failed", "refused", "refused", "stored"]);
  assert.deepEqual(sent, ["a", "b", "e"]);
  isDown = false;
  await queue.retry(queue.uploads[1]);
  assert.equal(queue.stored, 3);
  assert.deepEqual([text, large, file("x", "image/gif", 0)].map(findRefusal), ["otherKind", "tooLarge", "empty"]);
});

test("images wait in one change set where changes are reviewed, and in another one when that is merged", async () => {
  const sent = [];
  let begun = 0;
  let status = 403;
  const content = {
    assets: {
      upload: async ({ name }, { changeSet }) => {
        sent.push(`${name} ${changeSet ?? "-"}`);
        if (status === 409) throw Object.assign(new Error("merged"), { status });
        if (!changeSet && status === 403) {
          const details = { uploadRef: `ref ${name}` };
          throw Object.assign(new Error("review"), { status, code: "reviewRequired", details });
        }
        if (status === 402) throw Object.assign(new Error("plan"), { status, code: "planLocked" });
        return name === "live" ? { id: name, changeSet: "" } : { id: name, changeSet };
      },
      store: async ({ uploadRef, filename, changeSet }) => {
        sent.push(`${uploadRef} ${changeSet}`);
        return { id: filename, changeSet };
      },
    },
    changeSets: { begin: async ({ title }) => ({ id: `${title} ${++begun}` }) },
  };
  const store = makeImageStore(content, "set", AbortSignal.abort());
  assert.equal((await store({ name: "a" })).waitsIn, "set 1");
  assert.equal((await store({ name: "b" })).waitsIn, "set 1");
  assert.deepEqual(sent, ["a -", "ref a set 1", "b set 1"]);
  status = 409;
  await assert.rejects(store({ name: "c" }), /merged/);
  status = 403;
  assert.equal((await store({ name: "c" })).waitsIn, "set 2");
  assert.equal((await store({ name: "live" })).waitsIn, undefined);
  status = 402;
  await assert.rejects(makeImageStore(content, "set", AbortSignal.abort())({ name: "d" }), /plan/);
  assert.equal(begun, 2);
});

/** Change sets as the service keeps them: `sets` has their documents. @param {any[]} sets */
function fakeChangeSets(sets) {
  const sent = [];
  const setOf = (id) => sets.find((one) => one.id === id);
  const changeSets = {
    fault: undefined,
    list: async () => sets.map(({ held, ...one }) => ({ own: true, status: "open", ...one, documents: held.length })),
    page: async (id, { cursor = "0", model }) => {
      const own = setOf(id).held.filter((one) => one.model === model);
      const [at, next] = [Number(cursor), Number(cursor) + 1]; // pages of one document
      return { documents: own.slice(at, next), ...(own.length > next && { nextCursor: String(next) }) };
    },
    begin: async ({ title }) => {
      sets.unshift({ id: `new ${sets.length}`, title, held: [] });
      return sets[0];
    },
    change: async (id, model, document, change) => {
      sent.push(`${id} ${model}/${document} ${change.title}`);
      if (changeSets.fault) throw Object.assign(new Error("no"), { status: changeSets.fault });
      return { id: document, ...change };
    },
    discard: async (id) => sent.push(`discard ${id}`),
  };
  return { changeSets, sent };
}

test("a change that is reviewed goes to one's own open change set that has the document", async () => {
  const rye = { model: "recipe", id: "rye" };
  const { changeSets, sent } = fakeChangeSets([
    { id: "deletes", held: [{ ...rye, deleted: true }] },
    { id: "another's", own: false, held: [rye] },
    { id: "merged", status: "merged", held: [rye] },
    { id: "other documents", held: [{ model: "faq", id: "rye" }, { model: "recipe", id: "cake" }] },
    { id: "hers", held: [{ model: "recipe", id: "cake" }, rye] },
    { id: "older", held: [rye] },
  ]);
  const store = new ReviewStore({ changeSets }, "recipe");
  const { changeSet, document } = await store.store("rye", { title: "Dark rye" }, "Rye");
  assert.deepEqual([changeSet.id, document.title], ["hers", "Dark rye"]);
  changeSets.list = () => assert.fail("It is known by now.");
  await store.store("rye", { title: "Rye" }, "Rye");
  assert.deepEqual(sent, ["hers recipe/rye Dark rye", "hers recipe/rye Rye"]);
});

test("without one, a change set is begun, and discarded if the change is refused", async () => {
  const { changeSets, sent } = fakeChangeSets([]);
  const store = new ReviewStore({ changeSets }, "recipe");
  const save = (title) => store.store("rye", { title }, "😀".repeat(600));
  changeSets.fault = 400;
  await assert.rejects(save("a"), /no/);
  changeSets.fault = 503; // it may have been stored all the same
  await assert.rejects(save("b"), /no/);
  changeSets.fault = undefined;
  const { changeSet } = await save("c");
  assert.ok(changeSet.title.includes("😀") && [...changeSet.title].length <= 500);
  changeSets.fault = 409; // somebody has merged it
  await assert.rejects(save("d"), /no/);
  changeSets.fault = undefined;
  await save("e");
  const expected = ["new 0 a", "discard new 0", "new 1 b", "new 1 c", "new 1 d", "new 2 e"];
  assert.deepEqual(
    sent.map((one) => one.replace("recipe/rye ", "")),
    expected,
  );
});

test("an id that is drawn here can be one of a document, and later ones are greater", () => {
  const first = drawDocumentId(1_800_000_000_000);
  const ids = [first, drawDocumentId(1_800_000_001_000), drawDocumentId(1_800_000_001_000)];
  assert.ok(ids.every((id) => /^[0-9a-f]{24}$/.test(id)));
  assert.ok(ids[0] < ids[1] && ids[0] < ids[2] && ids[1] !== ids[2]);
  const kinds = ["singleton", "dictionary", "collection", "page"];
  assert.deepEqual(
    kinds.map((kind) => findSingleId({ kind })),
    ["main", "main", undefined, undefined],
  );
});

test("a list is compared by item, an object by member, and a text with markup by block", () => {
  assert.deepEqual(toLines(["rye", { b: 1, a: ["x"] }, ""]), ["• rye", "• a:", "    • x", "  b: 1", "• "]);
  assert.deepEqual(toLines("<h2>A</h2><p>b<br>c</p>"), ["<h2>A</h2>", "<p>b<br>", "c</p>"]);
  assert.deepEqual(toLines("one\n\ntwo"), ["one", "", "two"]);
  assert.deepEqual([toLines(undefined), toLines(""), toLines(false)], [[], [], ["false"]]);
});

test("lines that stay are left out but for those beside what has changed", () => {
  const lines = Array.from({ length: 9 }, (_, index) => `line ${index}`);
  const changed = lines.toSpliced(4, 1, "new", "newer");
  assert.deepEqual(compareLines(lines, changed), [
    { same: [], left: 3 },
    { same: ["line 3"], left: 0 },
    { before: ["line 4"], after: ["new", "newer"] },
    { same: ["line 5"], left: 3 },
  ]);
  assert.deepEqual(compareLines(["a"], ["a", "b"]), [{ same: ["a"], left: 0 }, { before: [], after: ["b"] }]);
  assert.deepEqual(compareLines([], ["b"]), [{ before: [], after: ["b"] }]);
  assert.deepEqual(compareLines(["a", "b"], ["b"]), [{ before: ["a"], after: [] }, { same: ["b"], left: 0 }]);
});

test("a field that goes while a new one says the same was renamed, unless two might be meant", () => {
  const version = (en, data = {}) => ({ locales: { en, data } });
  const said = listDifferences(version({ title: "Rye", old: "x" }), version({ name: "Rye", one: "x", two: "x" }));
  assert.deepEqual(said, [
    { field: "en.old", before: "x", after: undefined },
    { field: "en.name", before: "Rye", after: "Rye", renamedFrom: "en.title" },
    { field: "en.one", before: undefined, after: "x" },
    { field: "en.two", before: undefined, after: "x" },
  ]);
  assert.deepEqual(
    listDifferences(version({ a: 1 }), version({ a: "1" })).map(({ field }) => field),
    ["en.a"],
  );
  assert.deepEqual(listDifferences(version({ a: "" }), version({})), []);
});

test("a page that ended early moves the numbers of those behind it", () => {
  const places = new PagePlaces();
  places.goOn("c", 20);
  places.goOn("g", 4);
  assert.deepEqual([places.shown, places.isFirst], [{ cursor: "g", first: 25 }, false]);
  places.goBack();
  assert.deepEqual(places.shown, { cursor: "c", first: 21 });
  places.reset();
  assert.deepEqual([places.shown, places.isFirst], [{ first: 1 }, true]);
});
