/** Find links and references of a page that lead nowhere. */

import { isTextNode, tagOf, walk } from "../state/component-tree.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */

const MAX_LISTED_LINKS = 8;
const ID_REFERENCES =
  /^(?:for|form|list|headers|popovertarget|aria-(?:labelledby|describedby|controls|owns|details|activedescendant))$/;

/**
 * Note which targets the open pages have. Call the result after an edit for a sentence on links without a target.
 * @param {EditorDocument} document
 * @returns {() => string} empty if there are none
 */
export function describeBrokenLinks(document) {
  const before = targetsIn(document);
  return () => {
    const after = targetsIn(document);
    const removed = new Set([...before].filter((name) => !after.has(name)));
    if (!removed.size) return "";
    const broken = findReferences(document).filter(({ name }) => removed.has(name));
    if (!broken.length) return "";
    const listed = broken.slice(0, MAX_LISTED_LINKS).map(({ text }) => text);
    const suffix = broken.length > listed.length ? ` and ${broken.length - listed.length} more` : "";
    return `These links have no target now: ${listed.join(", ")}${suffix}. Point them elsewhere with updateNodeProps, or delete them.`;
  };
}

/** @param {EditorDocument} document */
function targetsIn(document) {
  const names = new Set();
  for (const root of document.ids.roots()) {
    walk(root, (one) => {
      const { id, name } = one.attributes.attributes ?? {};
      if (id) names.add(id);
      if (name && tagOf(one) === "a") names.add(name);
    });
  }
  return names;
}

/** @param {EditorDocument} document */
function findReferences(document) {
  /** @type {{name: string, text: string}[]} */
  const found = [];
  for (const root of document.ids.roots()) {
    walk(root, (one) => {
      if (isTextNode(one)) return;
      for (const [attribute, value] of Object.entries(one.attributes.attributes ?? {})) {
        const from = `from the <${tagOf(one)}> ${document.ids.of(one)}`;
        if (typeof value !== "string") continue;
        if (/^(?:xlink:)?href$/.test(attribute) && value.startsWith("#")) {
          found.push({ name: value.slice(1), text: `${value} ${from}` });
        } else if (ID_REFERENCES.test(attribute)) {
          for (const name of value.split(/\s+/)) found.push({ name, text: `${attribute}=${name} ${from}` });
        }
      }
    });
  }
  return found;
}
