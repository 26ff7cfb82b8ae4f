/** Copy a component with its rules, so that the copies have ids of their own. */

import { walk } from "../state/component-tree.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/component-tree.js").Component} Component */

/**
 * Return definitions of copies with ids of their own, and these ids.
 * @param {EditorDocument} document
 * @param {Component} component
 * @param {number} count
 */
export function makeCopies(document, component, count) {
  const used = new Set();
  for (const root of document.ids.roots()) walk(root, (one) => used.add(one.attributes.attributes?.id));
  const copies = [];
  const newIds = [];
  for (let number = 0; number < count; number++) {
    const { copy, renamed } = copyOf(document, component, used);
    copies.push(copy);
    newIds.push(...renamed);
  }
  return { copies, newIds };
}

/**
 * @param {EditorDocument} document
 * @param {Component} component
 * @param {Set<unknown>} used ids; those of the copy are added
 */
function copyOf(document, component, used) {
  /** @type {Map<string, string>} */
  const renames = new Map();
  /** @type {string[]} */
  const renamed = [];
  walk(component, (one) => {
    const id = one.attributes.attributes?.id;
    if (!id) return;
    renames.set(id, freeId(id, used));
    if (document.ids.ownIdAttribute(one) === id) renamed.push(/** @type {string} */ (renames.get(id)));
    document.rules.copyIdRules(id, /** @type {string} */ (renames.get(id)));
  });
  const copy = JSON.parse(JSON.stringify(component), (key, value) =>
    /^fermata(?:OwnI|I)d$/.test(key) ? undefined : value,
  );
  renameIds(copy, renames);
  return { copy, renamed };
}

/**
 * @param {string} id
 * @param {Set<unknown>} used
 */
function freeId(id, used) {
  const base = id.replace(/-\d+$/, "");
  let number = 2;
  while (used.has(`${base}-${number}`)) number++;
  used.add(`${base}-${number}`);
  return `${base}-${number}`;
}

const REFERENCES =
  /^(?:id|for|form|list|headers|popovertarget|aria-(?:labelledby|describedby|controls|owns|details|activedescendant))$/;

/**
 * Rename ids in a component's definition, and the references to them within it.
 * @param {any} json
 * @param {Map<string, string>} renames
 */
function renameIds(json, renames) {
  for (const [name, value] of Object.entries(json.attributes ?? {})) {
    if (typeof value !== "string") continue;
    const rename = (/** @type {string} */ id) => renames.get(id) ?? id;
    if (REFERENCES.test(name)) json.attributes[name] = value.replace(/\S+/g, rename);
    else
      json.attributes[name] = value
        .replace(/^#(.+)$/, (_, id) => `#${rename(id)}`)
        .replace(/url\(#([^()]+)\)/g, (_, id) => `url(#${rename(id)})`);
  }
  for (const child of json.components ?? []) renameIds(child, renames);
}
