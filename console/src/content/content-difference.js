/** Compare what documents say, field by field. */

import { withoutDefaults } from "./own-definition.js";

/** Models are documents of it, which have their fields in a member of what is the same in all languages. */
const META_MODEL = "model";
const DEFINED_FIELDS = "data.fields";

/** @typedef {{field: string, before: any, after: any, renamedFrom?: string}} FieldDifference */

/**
 * List the fields that differ, by their paths: `title`, `status`, `en.body`. An object is compared as a whole, because merges
 * decide so; only of the definition of a model, each field is compared.
 *
 * @param {Record<string, any> | undefined} before
 * @param {Record<string, any> | undefined} after
 * @returns {FieldDifference[]}
 */
export function listDifferences(before, after) {
  const old = flatten(before);
  const now = flatten(after);
  const fields = [...new Set([...old.keys(), ...now.keys()])];
  const differences = fields
    .map((field) => ({ field, before: old.get(field), after: now.get(field) }))
    .filter(
      ({ before, after }) => toText(before) !== toText(after) || (toText(after) && typeof before !== typeof after),
    );
  return pairRenamed(differences);
}

/**
 * Take a field that is gone and one that is new for one that was renamed, where both say the same in the same language, and
 * no other one does.
 *
 * @param {FieldDifference[]} differences
 * @returns {FieldDifference[]}
 */
function pairRenamed(differences) {
  const placeOf = (/** @type {string} */ field) => field.slice(0, field.lastIndexOf(".") + 1);
  const nameOf = (/** @type {FieldDifference} */ { field }, /** @type {any} */ value) =>
    `${placeOf(field)} ${toText(value)}`;
  /** @type {Map<string, FieldDifference[]>} */
  const gone = new Map();
  /** @type {Map<string, FieldDifference[]>} */
  const added = new Map();
  for (const one of differences) {
    if (!one.field.includes(".")) continue;
    const [list, name] = one.after === undefined ? [gone, nameOf(one, one.before)] : [added, nameOf(one, one.after)];
    if (one.after === undefined || one.before === undefined) list.set(name, [...(list.get(name) ?? []), one]);
  }
  const pairs = [...added].flatMap(([name, news]) => {
    const olds = gone.get(name) ?? [];
    return news.length === 1 && olds.length === 1 ? [/** @type {const} */ ([olds[0], news[0]])] : [];
  });
  const renamed = new Map(pairs.map(([old, now]) => [now, { ...now, before: old.before, renamedFrom: old.field }]));
  const replaced = new Set(pairs.map(([old]) => old));
  return differences.filter((one) => !replaced.has(one)).map((one) => renamed.get(one) ?? one);
}

/** @param {Record<string, any> | undefined} document */
function flatten(document) {
  /** @type {Map<string, any>} */
  const fields = new Map();
  for (const name of ["title", "slug", "status"]) if (document?.[name]) fields.set(name, document[name]);
  for (const [locale, content] of Object.entries(document?.locales ?? {}))
    for (const [name, value] of Object.entries(content ?? {})) fields.set(`${locale}.${name}`, value);
  const defined = document?.model === META_MODEL && fields.get(DEFINED_FIELDS);
  if (defined && typeof defined === "object" && !Array.isArray(defined)) {
    fields.delete(DEFINED_FIELDS);
    for (const [name, value] of Object.entries(defined))
      fields.set(`${DEFINED_FIELDS}.${name}`, withoutDefaults(value));
  }
  return fields;
}

/**
 * Write a value as people read it: a text as it is, anything else as JSON with its members in order.
 *
 * @param {any} value
 * @returns {string} Empty for no value.
 */
export function toText(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(sortMembers(value), null, 2);
}

/** @param {any} value @returns {any} */
function sortMembers(value) {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (value === null || typeof value !== "object") return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, sortMembers(value[name])]));
}

/**
 * Say what of a document's content has changed, as the service wants it: only changed fields, and null for one that is gone.
 *
 * @param {Record<string, Record<string, any>>} before
 * @param {Record<string, Record<string, any>>} after
 * @returns {Record<string, Record<string, any>>} Empty if nothing has.
 */
export function changedLocales(before, after) {
  /** @type {Record<string, Record<string, any>>} */
  const changed = {};
  for (const locale of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[locale] ?? {}, after[locale] ?? {}];
    for (const name of new Set([...Object.keys(old), ...Object.keys(now)])) {
      if (toText(old[name]) === toText(now[name]) && typeof old[name] === typeof now[name]) continue;
      changed[locale] = { ...changed[locale], [name]: now[name] ?? null };
    }
  }
  return changed;
}
