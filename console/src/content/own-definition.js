/** What the definition of a model says by itself. */

/** Members of models and fields that are false without them. */
const FLAGS = ["required", "unique", "i18n"];
const KEPT_WHOLE = ["form", "default"];
const OWN_MEMBERS = ["id", "builtIn", "version", "documents", "formPath"];

/**
 * Return the definition of a model as it is put: without what the service adds.
 *
 * @param {any} model
 */
export function readOwnDefinition(model) {
  const own = Object.entries(model).filter(([name]) => !OWN_MEMBERS.includes(name));
  return withoutDefaults(Object.fromEntries(own));
}

/**
 * Leave out what says nothing. What is false or 0 may say something, such as that a form is closed.
 *
 * @param {any} value
 * @returns {any}
 */
export function withoutDefaults(value) {
  if (Array.isArray(value)) return value.map(withoutDefaults);
  if (value === null || typeof value !== "object") return value;
  const said = Object.entries(value).filter(([name, each]) => !saysNothing(name, each));
  return Object.fromEntries(
    said.map(([name, each]) => [name, KEPT_WHOLE.includes(name) ? each : withoutDefaults(each)]),
  );
}

/** @param {string} name @param {any} value */
function saysNothing(name, value) {
  if (value === false) return FLAGS.includes(name);
  return value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length);
}
