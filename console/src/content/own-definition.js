/** What the definition of a model says by itself. */

/** What members of models and fields say where they are left out. */
const DEFAULTS = /** @type {Record<string, any>} */ ({
  required: false,
  unique: false,
  i18n: false,
  title: "",
  description: "",
  model: [],
});
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
 * Leave out what says nothing of a model or a field. What is false or 0 may say something, such as that a form is closed, and members
 * of other programs stay as they are.
 *
 * @param {any} definition
 * @returns {any}
 */
export function withoutDefaults(definition) {
  if (definition === null || typeof definition !== "object" || Array.isArray(definition)) return definition;
  const said = Object.entries(definition).filter(([name, value]) => !saysNothing(name, value));
  return Object.fromEntries(said.map(([name, value]) => [name, shortenMember(name, value)]));
}

/** @param {string} name @param {any} value */
function shortenMember(name, value) {
  if (name === "items") return withoutDefaults(value);
  if (name !== "fields" || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([field, definition]) => [field, withoutDefaults(definition)]));
}

/** @param {string} name @param {any} value */
function saysNothing(name, value) {
  if (value === null || value === undefined) return true;
  return Object.hasOwn(DEFAULTS, name) && JSON.stringify(value) === JSON.stringify(DEFAULTS[name]);
}
