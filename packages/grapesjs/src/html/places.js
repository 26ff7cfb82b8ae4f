/** Know which elements may stand where, as browsers parse HTML. */

import { refuse } from "../tool-error.js";

/** @param {string} names */
const nameSet = (names) => new Set(names.split(" "));

export const INLINE_TAGS = nameSet(
  "a abbr b bdi bdo br button cite code data del dfn em i img input ins kbd label mark meter output picture progress " +
    "q ruby s samp select small span strong sub sup svg textarea time u var wbr",
);
export const VOID_TAGS = nameSet(
  "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr",
);
const PARENTS_BY_TABLE_TAG = new Map(
  Object.entries({
    caption: "table",
    colgroup: "table",
    col: "colgroup table",
    thead: "table",
    tbody: "table",
    tfoot: "table",
    tr: "table thead tbody tfoot",
    td: "tr",
    th: "tr",
  }).map(([tag, parents]) => [tag, nameSet(parents)]),
);
const TABLE_STRUCTURE_TAGS = nameSet("table colgroup thead tbody tfoot tr");
const ANYWHERE_TAGS = nameSet("script style template");
/** Elements that browsers end where another one of the same kind begins, or whose inner one they ignore. */
const UNNESTABLE_TAGS = nameSet("a button form");
const FIRST_CHILD_TAGS = nameSet("caption legend summary");
const COLUMN_TAGS = nameSet("colgroup col");

/**
 * Refuse elements, or text between them, that a browser would drop or move.
 * @param {string} parent tag
 * @param {string[]} tags
 * @param {string} [looseText]
 */
export function checkPlace(parent, tags, looseText = "") {
  if (parent === "template") return;
  if (TABLE_STRUCTURE_TAGS.has(parent) && looseText)
    refuse(`Browsers move text out of a <${parent}>. Put it in a cell.`);
  for (const tag of tags) {
    const parents = PARENTS_BY_TABLE_TAG.get(tag);
    if (parents && !parents.has(parent)) {
      const listed = [...parents].sort().map((name) => `<${name}>`);
      refuse(`A <${tag}> belongs in a ${listed.join(" or ")}, not in a <${parent}>. Choose another parent.`);
    }
    if (TABLE_STRUCTURE_TAGS.has(parent) && !parents && !ANYWHERE_TAGS.has(tag)) {
      const own = [...PARENTS_BY_TABLE_TAG].filter(([, allowed]) => allowed.has(parent)).map(([name]) => `<${name}>`);
      refuse(`Browsers move a <${tag}> out of a <${parent}>, which takes: ${own.join(", ")}. Put it in a cell.`);
    }
  }
}

/**
 * Refuse elements, at any depth, that would be within one of their kind around them.
 * @param {{tag: string, id: string}[]} around from the parent outwards
 * @param {string[]} tags
 */
export function checkNesting(around, tags) {
  const outer = around.find(({ tag }) => UNNESTABLE_TAGS.has(tag) && tags.includes(tag));
  if (outer) {
    refuse(
      `A <${outer.tag}> cannot be within the <${outer.tag}> ${outer.id}: browsers end the outer one there, and what ` +
        "follows would no longer belong to it. Put them next to each other.",
    );
  }
}

/**
 * Refuse elements that a browser would put elsewhere when it reads the page, such as a block in a paragraph.
 * @param {string[]} around tags from the parent outwards, without the body
 * @param {string} html
 */
export function checkBrowserKeeps(around, html) {
  const template = document.createElement("template");
  const outwards = around.filter((tag) => !/[^a-z0-9-]/.test(tag) && tag !== "body");
  const inwards = [...outwards].reverse();
  const open = inwards.map((tag) => `<${tag}>`).join("");
  template.innerHTML = `${open}${html}${outwards.map((tag) => `</${tag}>`).join("")}`;
  /** @type {Element | DocumentFragment | null} */
  let place = template.content;
  for (const tag of inwards) place = place?.firstElementChild?.localName === tag ? place.firstElementChild : null;
  const alone = document.createElement("template");
  alone.innerHTML = html;
  const isKept = place instanceof Element ? place.innerHTML.trim() === alone.innerHTML.trim() : place !== null;
  if (!isKept) {
    refuse(`This HTML is not allowed at this place in <${around[0] ?? "body"}>. Choose another parent or index.`);
  }
}

/**
 * Return the place where elements take effect, among the child elements of a parent.
 *
 * Rows of a table go into its last body, columns into its group. A caption, a head and a source of a picture go where
 * they count.
 * @param {{tag: string, children: string[]}} parent
 * @param {string[]} tags
 * @param {number | undefined} index
 * @returns {{group?: string, index?: number}} `group` is the tag of the last child to append to instead
 */
export function choosePlace(parent, tags, index) {
  if (!tags.length) return { index };
  const isAppended = index === undefined || index >= parent.children.length;
  if (isAppended && parent.tag === "table" && new Set(tags).size === 1) {
    const group = { tr: "tbody", col: "colgroup" }[tags[0]];
    if (group && parent.children.includes(group) && !parent.children.includes("tr")) return { group };
  }
  const position = effectiveIndex(parent, tags[0]);
  if (position === undefined || (index !== undefined && (tags[0] !== "source" || index <= position))) return { index };
  return { index: position };
}

/**
 * @param {{tag: string, children: string[]}} parent
 * @param {string} tag
 * @returns {number | undefined} undefined if it counts anywhere
 */
function effectiveIndex({ tag: parent, children }, tag) {
  if (FIRST_CHILD_TAGS.has(tag) && !children.includes(tag)) return 0;
  if (parent === "picture" && tag === "source" && children.includes("img")) return children.indexOf("img");
  if (parent === "table" && (COLUMN_TAGS.has(tag) || tag === "thead")) {
    const after = children.findIndex((own) => own !== "caption" && !COLUMN_TAGS.has(own));
    return after === -1 ? children.length : after;
  }
  return undefined;
}
