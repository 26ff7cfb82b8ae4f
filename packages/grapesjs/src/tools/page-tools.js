/** The tools for pages: add, duplicate, delete, rename, and make templates of them. */

import { HOMEPAGE_SLUG } from "../document.js";
import { childrenOf } from "../state/component-tree.js";
import { refuse } from "../tool-error.js";
import { optionalNumber, optionalObject, optionalText, requiredText, requiredTexts } from "./arguments.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/edit.js").Edit} Edit */
/** @typedef {import("./arguments.js").ToolInput} ToolInput */

const DEFAULT_PRIORITY = 100;
const TARGETS = ["everywhere", "postTypes", "notFound"];

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function addPage(document, input, edit) {
  document.typing.protectPage();
  const name = requiredText(input, "title").trim();
  const slug = freeSlug(document, optionalText(input, "slug") || name);
  return addAndOpen(document, edit, { name, slug, component: "" });
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function duplicatePage(document, input, edit) {
  document.typing.protectPage();
  const source = findPage(document, requiredText(input, "pageId"));
  const name = requiredText(input, "title").trim();
  const slug = freeSlug(document, optionalText(input, "slug") || name);
  const created = addAndOpen(document, edit, { name, slug, component: "" });
  // clones take the rules of their ids with them, which copies of the JSON do not
  const copies = childrenOf(source.getMainComponent()).map((one) => one.clone());
  document.editor.Pages.get(created.pageId).getMainComponent().append(copies);
  return created;
}

/**
 * @param {EditorDocument} document
 * @param {Edit} edit
 * @param {Record<string, unknown>} json
 */
function addAndOpen(document, edit, json) {
  const [{ id }] = edit.apply({ op: "addPage", json: { id: `p${Math.random().toString(36).slice(2, 12)}`, ...json } });
  const page = document.editor.Pages.get(id);
  document.editor.UndoManager.skip(() => document.editor.Pages.select(page));
  return { pageId: id, slug: page.get("slug"), rootNodeId: document.ids.of(page.getMainComponent()) };
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function deletePage(document, input, edit) {
  const page = findPage(document, requiredText(input, "pageId"));
  if (document.editor.Pages.getAll().length < 2) refuse("This is the last page of the site, which cannot be deleted.");
  if (page === document.currentPage) document.typing.protectPage();
  edit.apply({ op: "removePage", id: page.getId() });
  return undefined;
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function renamePage(document, input, edit) {
  const page = findPage(document, requiredText(input, "pageId"));
  const name = requiredText(input, "title").replace(/\s+/g, " ").trim();
  if (!name) refuse("`title` is empty.");
  const slug = optionalText(input, "slug");
  const wanted = slugify(slug);
  if (slug && otherSlugs(document, page).has(wanted)) refuse(`The slug ${wanted} is that of another page.`);
  edit.apply({ op: "page", id: page.getId(), set: { name, ...(slug ? { slug: wanted } : {}) } });
  return undefined;
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function setPageTemplate(document, input, edit) {
  const page = findPage(document, requiredText(input, "pageId"));
  const { kind, ...rest } = optionalObject(input, "target");
  if (!TARGETS.includes(kind)) refuse(`\`target.kind\` is one of ${TARGETS.join(", ")}.`);
  const target = kind === "postTypes" ? { kind, tableSlugs: requiredTexts(rest, "tableSlugs") } : { kind };
  const priority = optionalNumber(input, "priority") ?? page.get("template")?.priority ?? DEFAULT_PRIORITY;
  edit.apply({ op: "page", id: page.getId(), set: { template: { enabled: true, target, priority } } });
  return { note: "The editor keeps this with the page. What shows the site has to make use of it." };
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function clearPageTemplate(document, input, edit) {
  const page = findPage(document, requiredText(input, "pageId"));
  if (!page.get("template")) refuse("This page is not a template, so there is nothing to convert.");
  edit.apply({ op: "page", id: page.getId(), set: { template: null } });
  return undefined;
}

/**
 * @param {EditorDocument} document
 * @param {string} id
 */
function findPage(document, id) {
  const pages = document.editor.Pages.getAll();
  const listed = () => pages.map((/** @type {any} */ one) => `${one.getId()} (${document.titleOf(one)})`).join(", ");
  return document.editor.Pages.get(id) ?? refuse(`There is no page ${id}. There are: ${listed()}.`);
}

/** @param {string} text */
function slugify(text) {
  const slug = text
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-");
  return slug.replace(/^-|-$/g, "") || "page";
}

/**
 * @param {EditorDocument} document
 * @param {any} [own]
 */
function otherSlugs(document, own) {
  const others = document.editor.Pages.getAll().filter((/** @type {any} */ one) => one !== own);
  return new Set([...others.map((/** @type {any} */ one) => document.slugOf(one)), ...(own ? [] : [HOMEPAGE_SLUG])]);
}

/**
 * @param {EditorDocument} document
 * @param {string} text
 */
function freeSlug(document, text) {
  const [base, used] = [slugify(text), otherSlugs(document)];
  if (!used.has(base)) return base;
  let number = 2;
  while (used.has(`${base}-${number}`)) number++;
  return `${base}-${number}`;
}
