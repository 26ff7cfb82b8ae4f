import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { canonicalJson, checkSchema, listErrors } from "../src/schema.js";

test("schemas with the known keywords are accepted", () => {
  checkSchema({
    type: "object",
    properties: {
      a: {
        anyOf: [
          { const: 1, type: "integer" },
          { type: "array", items: { type: "string" }, minItems: 1 },
        ],
      },
    },
    patternProperties: { "^(.*)$": {} },
    required: ["a"],
    additionalProperties: false,
  });
});

test("a keyword that is not known is an error, however deep it is", () => {
  for (const [schema, words] of [
    [{ type: "string", format: "uri" }, "The schema has unknown keywords: format."],
    [{ properties: { a: { items: { oneOf: [] } } } }, "The schema a items has unknown keywords: oneOf."],
    [{ anyOf: [{ $ref: "#/x" }] }, "The schema anyOf has unknown keywords: $ref."],
    [{ type: ["string", "null"] }, 'The schema has unknown keywords: type ["string","null"].'],
    [{ patternProperties: { "^a": {} } }, "The schema has unknown keywords: patternProperties ^a."],
    [
      { additionalProperties: { type: "string" } },
      "The schema has unknown keywords: additionalProperties with a schema.",
    ],
  ]) {
    assert.throws(() => checkSchema(schema), { name: "SchemaError", message: words });
  }
});

test("members of an object's prototype are neither known nor present", () => {
  const schema = { type: "object", properties: {}, required: ["constructor"], additionalProperties: false };
  assert.deepEqual(listErrors(schema, {}), ["constructor: Expected required property"]);
  assert.equal(listErrors(schema, JSON.parse('{"toString": 1, "constructor": 2}')).length, 2);
});

test("equal values have equal texts", () => {
  assert.equal(canonicalJson({ b: [{ d: 1, c: 2 }], a: null }), canonicalJson({ a: null, b: [{ c: 2, d: 1 }] }));
  assert.notEqual(canonicalJson([1, 2]), canonicalJson([2, 1]));
});

const cases = process.env.SCHEMA_CASES;
test("the errors of values are those of the service", { skip: !cases && "SCHEMA_CASES names no file" }, () => {
  const all = JSON.parse(readFileSync(cases, "utf8"));
  for (const { schema, value, errors } of all) {
    const found = listErrors(schema, value).map((error) => error.split(", got ")[0]);
    assert.deepEqual(found.sort(), errors.sort(), JSON.stringify({ schema, value }));
  }
  assert.ok(all.length > 100);
});
