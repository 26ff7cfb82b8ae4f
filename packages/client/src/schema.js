/**
 * Check a value against a JSON Schema of the service's tools, with sentences that a model can act on. They are the same as
 * the service's own.
 *
 * Only the keywords that the tools use are known. Any other one is an error: a value that was not checked must not pass.
 */

import { SchemaError } from "./errors.js";

/** @typedef {Record<string, any>} Schema */

const ANY_KEY = "^(.*)$";
const KNOWN = new Set(
  (
    "type properties required additionalProperties patternProperties items minItems maxItems uniqueItems " +
    "anyOf const minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum " +
    "default description title examples"
  ).split(" "),
);
const TYPES = new Set(["object", "array", "string", "integer", "number", "boolean"]);
/** The checks of limits: keyword, whether the value keeps it, and what to say. */
const NUMBER_LIMITS = /** @type {const} */ ([
  ["minimum", (/** @type {number} */ a, /** @type {number} */ b) => a >= b, "greater or equal to"],
  ["maximum", (/** @type {number} */ a, /** @type {number} */ b) => a <= b, "less or equal to"],
  ["exclusiveMinimum", (/** @type {number} */ a, /** @type {number} */ b) => a > b, "greater than"],
  ["exclusiveMaximum", (/** @type {number} */ a, /** @type {number} */ b) => a < b, "less than"],
]);

/**
 * Check that a schema has only known keywords.
 *
 * @param {Schema} schema
 * @param {string} [path]
 * @throws {SchemaError}
 */
export function checkSchema(schema, path = "") {
  const unknown = Object.keys(schema).filter((keyword) => !KNOWN.has(keyword));
  if (schema.type !== undefined && !TYPES.has(schema.type)) unknown.push(`type ${JSON.stringify(schema.type)}`);
  const keys = Object.keys(schema.patternProperties ?? {}).filter((pattern) => pattern !== ANY_KEY);
  unknown.push(...keys.map((pattern) => `patternProperties ${pattern}`));
  if (![undefined, true, false].includes(schema.additionalProperties))
    unknown.push("additionalProperties with a schema");
  if (unknown.length > 0) throw new SchemaError(`The schema${path} has unknown keywords: ${unknown.join(", ")}.`);
  for (const [name, member] of Object.entries(schema.properties ?? {})) checkSchema(member, `${path} ${name}`);
  for (const member of Object.values(schema.patternProperties ?? {})) checkSchema(member, `${path} *`);
  for (const member of schema.anyOf ?? []) checkSchema(member, `${path} anyOf`);
  if (schema.items) checkSchema(schema.items, `${path} items`);
}

/**
 * List what is wrong with a value.
 *
 * @param {Schema} schema
 * @param {any} value
 * @param {string} [path]
 * @returns {string[]} A sentence for each error; none when the value fits.
 */
export function listErrors(schema, value, path = "") {
  if (schema.anyOf) return unionErrors(schema.anyOf, value, path);
  if ("const" in schema) {
    return schema.const === value ? [] : [say(path, `Expected ${shorten(schema.const)}`, value)];
  }
  switch (schema.type) {
    case "object":
      return objectErrors(schema, value, path);
    case "array":
      return arrayErrors(schema, value, path);
    case "string":
      return stringErrors(schema, value, path);
    case "integer":
    case "number":
      return numberErrors(schema, value, path);
    case "boolean":
      return typeof value === "boolean" ? [] : [say(path, "Expected boolean", value)];
    default:
      return [];
  }
}

/**
 * Describe the errors of the intended variant, if the value's constants show which one is.
 *
 * @param {Schema[]} variants
 * @param {any} value
 * @param {string} path
 */
function unionErrors(variants, value, path) {
  if (variants.some((variant) => listErrors(variant, value).length === 0)) return [];
  const intended = variants.filter((variant) => isIntended(variant, value));
  if (intended.length === 1) return listErrors(intended[0], value, path);
  return [say(path, `Expected union value (one of ${variants.map(describe).join(", ")})`, value)];
}

/**
 * @param {Schema} variant
 * @param {any} value
 */
function isIntended(variant, value) {
  const constants = constantsOf(variant);
  return isObject(value) && constants.length > 0 && constants.every(([name, member]) => member.const === value[name]);
}

/**
 * @param {Schema} schema
 * @param {any} value
 * @param {string} path
 */
function objectErrors(schema, value, path) {
  if (!isObject(value)) return [say(path, "Expected object", value)];
  const { properties = {}, required = [], patternProperties = {} } = schema;
  const missing = required.filter((/** @type {string} */ name) => !Object.hasOwn(value, name));
  const errors = missing.map((/** @type {string} */ name) => say(join(path, name), "Expected required property"));
  for (const [name, member] of Object.entries(value)) {
    const isKnown = Object.hasOwn(properties, name);
    if (schema.additionalProperties === false && !isKnown) {
      const expected = Object.keys(properties).join(", ");
      errors.push(say(join(path, name), `Unexpected property (expected are ${expected})`));
    }
    const memberSchema = isKnown ? properties[name] : (patternProperties[ANY_KEY] ?? {});
    errors.push(...listErrors(memberSchema, member, join(path, name)));
  }
  return errors;
}

/**
 * @param {Schema} schema
 * @param {any} value
 * @param {string} path
 */
function arrayErrors(schema, value, path) {
  if (!Array.isArray(value)) return [say(path, "Expected array", value)];
  const errors = lengthErrors(schema.minItems, schema.maxItems, value.length, "array length to be", path);
  if (schema.uniqueItems && new Set(value.map(canonicalJson)).size < value.length) {
    errors.push(say(path, "Expected array elements to be unique"));
  }
  const itemErrors = value.flatMap((item, index) => listErrors(schema.items ?? {}, item, `${path}[${index}]`));
  return [...errors, ...itemErrors];
}

/**
 * @param {Schema} schema
 * @param {any} value
 * @param {string} path
 */
function stringErrors(schema, value, path) {
  if (typeof value !== "string") return [say(path, "Expected string", value)];
  const isLimited = schema.minLength !== undefined || schema.maxLength !== undefined;
  const length = isLimited ? [...value].length : 0;
  const errors = lengthErrors(schema.minLength, schema.maxLength, length, "string length", path);
  if (schema.pattern && !new RegExp(schema.pattern, "u").test(value)) {
    errors.push(say(path, `Expected string to match ${schema.pattern}`, value));
  }
  return errors;
}

/**
 * @param {Schema} schema
 * @param {any} value
 * @param {string} path
 */
function numberErrors(schema, value, path) {
  const kind = schema.type;
  const fits = kind === "integer" ? Number.isInteger(value) : Number.isFinite(value);
  if (!fits) return [say(path, `Expected ${kind}`, value)];
  return NUMBER_LIMITS.filter(
    ([keyword, keeps]) => schema[keyword] !== undefined && !keeps(value, schema[keyword]),
  ).map(([keyword, , words]) => say(path, `Expected ${kind} to be ${words} ${schema[keyword]}`, value));
}

/**
 * @param {number | undefined} least
 * @param {number | undefined} most
 * @param {number} length
 * @param {string} what
 * @param {string} path
 */
function lengthErrors(least = 0, most = Number.POSITIVE_INFINITY, length, what, path) {
  if (length < least) return [say(path, `Expected ${what} greater or equal to ${least}`)];
  return length > most ? [say(path, `Expected ${what} less or equal to ${most}`)] : [];
}

/**
 * @param {string} path
 * @param {string} sentence
 * @param {any} [value]
 */
function say(path, sentence, value) {
  const actual = value === undefined ? "" : `, got ${shorten(value)}`;
  return `${path && `${path}: `}${sentence}${actual}`;
}

/**
 * @param {string} path
 * @param {string} name
 */
const join = (path, name) => (path ? `${path}.${name}` : name);

/** @param {any} value */
function shorten(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}

/**
 * Describe a variant by its constant, its constant members, or its type.
 *
 * @param {Schema} schema
 */
function describe(schema) {
  if ("const" in schema) return shorten(schema.const);
  const constants = constantsOf(schema).map(([name, member]) => `${name} ${shorten(member.const)}`);
  const kind = schema.type ?? "any value";
  return constants.length > 0 ? `${kind} with ${constants.join(" and ")}` : kind;
}

/**
 * @param {Schema} schema
 * @returns {[string, Schema][]}
 */
const constantsOf = (schema) => Object.entries(schema.properties ?? {}).filter(([, member]) => "const" in member);

/** @param {any} value */
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/**
 * Write JSON with the members of objects in order, so that equal values have equal texts.
 *
 * @param {any} value
 * @returns {string}
 */
export function canonicalJson(value) {
  return JSON.stringify(value, (_, member) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  );
}
