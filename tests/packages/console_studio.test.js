/** What the studio computes: rules of members, keys, forms and fields, what is open, and the HTML of a form. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { sayBreakingChanges } from "../../console/src/content/breaking-changes.js";
import {
  FIELD_TYPES,
  readFieldDefinition,
  readFieldName,
  sayItems,
} from "../../console/src/content/field-definition.js";
import { readOwnDefinition } from "../../console/src/content/own-definition.js";
import { findFormProblems, readFormState, toFormDefinition } from "../../console/src/studio/form-rules.js";
import { makeFormSnippet } from "../../console/src/studio/form-snippet.js";
import { describeRules, listKeysOfSpace, parseKeyRules } from "../../console/src/studio/key-rules.js";
import { parseRights } from "../../console/src/studio/member-rights.js";
import { judgeUse } from "../../console/src/studio/meter-use.js";
import { readOpenContext } from "../../console/src/studio/open-context.js";
import { WORDS } from "../../console/src/words/index.js";

test("a member without a named model or language may reach all of them", () => {
  const form = (members) => new Map(Object.entries(members));
  assert.deepEqual(parseRights(form({ user: " bob ", role: "editor", models: "", locales: " ," })), {
    user: "bob",
    rights: { role: "editor" },
  });
  const { rights } = parseRights(form({ user: "bob", role: "viewer", models: "faq, faq post", locales: "de" }));
  assert.deepEqual(rights, { role: "viewer", models: ["faq", "post"], locales: ["de"] });
});

test("keys of a project are those of its space, and a new one has the rules of its form", () => {
  const key = (id, project, revokedAt = null) => ({ id, revokedAt, conversation: project && { project } });
  const keys = [key(1, "a/main", "2026-01-01"), key(2, "b/main"), key(3, null), key(4, "a/main")];
  assert.deepEqual(
    listKeysOfSpace(keys, "a/main").map(({ id }) => id),
    [4, 1],
  );
  assert.deepEqual(describeRules({ models: ["faq", "post"], locales: null }), ["faq, post"]);
  const form = new Map(
    Object.entries({ role: "viewer", models: "faq", instructions: " ", perMinute: "5", perMonth: "9" }),
  );
  // what is empty is removed from a key that had it, and narrows no new one
  assert.deepEqual(parseKeyRules(form), {
    role: "viewer",
    models: ["faq"],
    locales: null,
    tools: null,
    instructions: "",
    modelId: null,
    messagesPerMinute: 5,
    messagesPerMonth: 9,
  });
});

const FORM_MODEL = {
  id: "contact",
  kind: "collection",
  i18n: false,
  version: 3,
  fields: {
    name: { type: "string", required: true },
    photo: { type: "image" },
    age: { type: "integer", min: 0, default: 0, unique: false },
    topics: { type: "array", items: "string" },
    news: { type: "boolean", default: false },
  },
};

test("a new form is in use, has a trap for programs, and has to show a field", () => {
  const state = readFormState(FORM_MODEL);
  assert.deepEqual([state.enabled, state.public, state.honeypot, state.perMinute], [true, true, "website", "10"]);
  assert.deepEqual(
    state.fields.filter(({ isPossible }) => !isPossible).map(({ name }) => name),
    ["photo"],
  );
  assert.deepEqual(findFormProblems(state), ["fields"]);
  assert.deepEqual(findFormProblems({ ...state, enabled: false }), []);
});

test("a form that is edited keeps its order and what it does not show, and says only which fields differ", () => {
  const form = {
    enabled: true,
    public: false,
    exposedFields: ["age", "name", "gone"],
    requiredOverrides: { name: false },
    limits: { perMinute: 5, perMonth: 100 },
    keepDays: 30,
    successMessage: "Thanks!",
  };
  const model = { ...FORM_MODEL, form };
  const state = readFormState(model);
  assert.deepEqual(state.fields.map(({ name }) => name).slice(0, 3), ["age", "name", "photo"]);
  state.fields[0].isRequired = true;
  const definition = toFormDefinition(state, model);
  assert.deepEqual(definition.exposedFields, ["age", "name"]);
  assert.deepEqual(definition.requiredOverrides, { age: true, name: false });
  assert.deepEqual([definition.public, definition.keepDays, definition.honeypot], [false, 30, ""]);
  assert.equal(toFormDefinition({ ...state, successMessage: "" }, model).successMessage, undefined);
  assert.deepEqual(toFormDefinition(readFormState({ ...model, form: definition }), model), definition);
});

test("what a form may not say is found before it is sent", () => {
  const fields = [{ name: "website", type: "string", isShown: true, isRequired: false, isPossible: true }];
  const wrong = { perMinute: "11", perMonth: "1.5", keepDays: "0", successMessage: "x".repeat(501) };
  const state = { ...readFormState(FORM_MODEL), fields, ...wrong };
  assert.deepEqual(findFormProblems(state), ["successMessage", "honeypot", "perMinute", "perMonth", "keepDays"]);
});

test("the definition of a model keeps what is false or 0 where that says something", () => {
  const form = { enabled: true, public: false, exposedFields: [] };
  const own = readOwnDefinition({ ...FORM_MODEL, form, title: "", builtIn: false, documents: 2 });
  assert.deepEqual(own.form, form, "a closed form would be open otherwise");
  assert.deepEqual(own.fields.age, { type: "integer", min: 0, default: 0 });
  assert.deepEqual(own.fields.news, { type: "boolean", default: false });
  assert.deepEqual(Object.keys(own), ["kind", "fields", "form"]);
});

test("the definition of a model keeps what other programs have added as it is", () => {
  const shade = { type: "select", options: ["a", ""], default: "", help: "", ui: { tabs: [], hidden: null } };
  const own = {
    kind: "collection",
    editor: { order: [], note: "" },
    icon: "",
    fields: { shade, unique: { type: "text" } },
  };
  const service = { id: "loaf", title: "", description: "", i18n: false, builtIn: false, version: 3, documents: 2 };
  const told = { required: false, unique: false, model: [], description: "" };
  const items = { type: "array", items: { type: "string" } };
  const stored = {
    ...own,
    ...service,
    fields: {
      shade: { ...shade, ...told },
      unique: own.fields.unique,
      items: { ...items, items: { ...items.items, ...told } },
    },
  };
  assert.deepEqual(readOwnDefinition(stored), { ...own, fields: { ...own.fields, items } });
});

test("the assistant is told of the model, the entry, the language and the branch that the address names", () => {
  const open = (path) => readOpenContext(`#/studio/shop/main${path}`);
  assert.deepEqual(open("/documents/bread/rye%20bread/de"), {
    panelState: "model",
    activeModelId: "bread",
    activeEntryId: "rye bread",
    activeLocale: "de",
  });
  assert.deepEqual(open("/documents/bread/-"), { panelState: "model", activeModelId: "bread" });
  assert.deepEqual(open("/models/bread"), { panelState: "model", activeModelId: "bread" });
  assert.deepEqual(open("/submissions/contact/form"), { panelState: "model", activeModelId: "contact" });
  assert.equal(open("/documents/vocabulary").panelState, "vocabulary");
  assert.deepEqual(open("/change-sets/c1"), { panelState: "branch", activeBranch: "cr/c1" });
  assert.deepEqual(open("/health"), { panelState: "overview" });
  assert.deepEqual(open(""), { panelState: "overview" });
  assert.equal(open("/documents/%E0%A4%A/x").activeModelId, "%E0%A4%A");
  assert.equal(readOpenContext("#/content/shop/main/documents/bread"), undefined);
});

const TEXTS = { trap: "Leave this empty", send: "Send", notSent: "</script><b>" };

test("what the HTML of a form says of names and options cannot leave its place", () => {
  const fields = {
    '"><script>alert(1)</script>': { type: "string", max: 60 },
    topic: { type: "select", options: ["a&b", "<i>"] },
    age: { type: "integer", min: 0 },
    action: { type: "text", min: 2 },
  };
  const form = {
    enabled: true,
    exposedFields: Object.keys(fields),
    requiredOverrides: { age: true },
    honeypot: 'web"site',
  };
  const state = { ...readFormState({ fields, form }), captcha: true };
  const captcha = { service: "hcaptcha", siteKey: 'key"><b>' };
  const html = makeFormSnippet({ address: "https://a.example/f", locale: "de", state, fields, captcha, texts: TEXTS });
  assert.deepEqual(html.match(/<script[^>]*>/g), [
    '<script src="https://js.hcaptcha.com/1/api.js" async defer>',
    "<script>",
  ]);
  assert.equal(html.match(/<\/script>/g).length, 2);
  for (const part of [
    'action="https://a.example/f?locale=de"',
    'name="&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;" maxlength="60"',
    "<option></option><option>a&#38;b</option><option>&#60;i&#62;</option>",
    'type="number" name="age" required step="1" min="0"',
    '<textarea name="action" rows="5" minlength="2">',
    '<p hidden><label>Leave this empty <input name="web&#34;site"',
    'data-sitekey="key&#34;&#62;&#60;b&#62;"',
    "window.hcaptcha?.reset();",
  ])
    assert.ok(html.includes(part), `${part} in ${html}`);
  const alone = makeFormSnippet({ address: "https://a.example/f", state, fields, captcha: null, texts: TEXTS });
  assert.ok(!/captcha|locale/.test(alone), "a site without a captcha has none in its pages");
});

/** The values of a form, in place of its controls. */
const controls = (values) => (name) => values[name] ?? "";

test("a field says what is for its type, and keeps what the form does not know", () => {
  const known = { type: "string", pattern: "^a", unique: true, default: "x", i18nHint: 1 };
  const read = controls({ type: "relations", pattern: "^a", unique: "on", model: "baker, shop baker", max: "3" });
  assert.deepEqual(readFieldDefinition(read, known), {
    type: "relations",
    default: "x",
    i18nHint: 1,
    max: 3,
    model: ["baker", "shop"],
  });
  const select = controls({ type: "select", options: " rye \n\nspelt\nrye", required: "on", description: "Flour" });
  assert.deepEqual(readFieldDefinition(select), {
    type: "select",
    required: true,
    options: ["rye", "spelt"],
    description: "Flour",
  });
  const list = (items) => readFieldDefinition(controls({ type: "array", items })).items;
  assert.deepEqual([list("image"), list('{"type": "select"}')], [{ type: "image" }, { type: "select" }]);
  assert.deepEqual(Object.keys(WORDS.de.content.models.editor.types), [...FIELD_TYPES]);
});

test("the items of a list are said so that nothing is lost when they are read again", () => {
  for (const items of [{ type: "number" }, { type: "integer", min: 0 }, { type: "boolean", default: false }]) {
    const read = (/** @type {string} */ name) => ({ type: "array", items: sayItems(items) })[name] ?? "";
    assert.deepEqual(readFieldDefinition(read, {}).items, items);
  }
  assert.equal(sayItems({ type: "string", required: false, description: "" }), "string");
});

test("what is wrong with a field is named, so that it is said in words", () => {
  const wrong = {
    min: { type: "string", min: "two" },
    order: { type: "number", min: "3", max: "2" },
    options: { type: "select" },
    model: { type: "relation" },
    items: { type: "array", items: "poem" },
    fields: { type: "object", fields: "[]" },
    maxSize: { type: "file", maxSize: "much" },
  };
  for (const [problem, values] of Object.entries(wrong))
    assert.throws(() => readFieldDefinition(controls(values)), { problem });
  assert.throws(() => readFieldName("baked on", []), { problem: "name" });
  assert.throws(() => readFieldName("title", ["title"]), { problem: "taken" });
  assert.equal(readFieldName("bakedOn", ["title"]), "bakedOn");
});

test("changes that break are said in words, and one of a later release as it is", () => {
  const said = sayBreakingChanges(["kind", "a: b: removed", "title: type", "date: required", "title: folded"]);
  assert.equal(said[1], WORDS.en.content.models.breaking.kinds.removed("a: b"));
  assert.deepEqual(said.slice(2), ["title gets another type.", "date is required from now on.", "title: folded"]);
});

test("a meter warns before its limit, and says what happens behind it", () => {
  const judge = (used, included, members = {}) => judgeUse({ used, included, ...members });
  assert.deepEqual(judge(79, 100), { share: 0.79, level: "fine", beyond: "refused" });
  assert.deepEqual(judge(80, 100), { share: 0.8, level: "near", beyond: "refused" });
  assert.deepEqual(judge(120, 100, { isBilled: true }), { share: 1, level: "full", beyond: "billed" });
  assert.deepEqual(judge(2, 1, { name: "deliveredBytes" }), { share: 1, level: "full", beyond: "counted" });
  assert.deepEqual(judge(0, 0, { isBilled: true }), { share: 0, level: "fine", beyond: "refused" }, "it is not sold");
  assert.equal(judge(1, 0, { name: "deliveredBytes" }).level, "full");
  for (const [used, included] of [
    [5, null],
    [null, 5],
  ])
    assert.deepEqual(judge(used, included), { level: "fine", beyond: "refused" });
});
