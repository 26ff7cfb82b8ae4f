/** The tools for scripts and style sheets: list, read, write, patch, inspect. */

import { checkBalanced } from "../css/tokens.js";
import { stripMarkdownFence } from "../html/markdown-fences.js";
import { hashText } from "../state/hash.js";
import { refuse } from "../tool-error.js";
import { optionalInteger, optionalObject, optionalText, requiredObjects, requiredText } from "./arguments.js";
import { findDocument } from "./read-tools.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/code-assets.js").CodeAsset} CodeAsset */
/** @typedef {import("../state/edit.js").Edit} Edit */
/** @typedef {import("./arguments.js").ToolInput} ToolInput */

const DEFAULT_PART_CHARS = 12_000;
const MAX_PART_CHARS = 100_000;
const MAX_CHARS = 1_000_000;
const EXTENSIONS = { script: /\.m?js$/i, style: /\.css$/i };

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export function listCodeAssets(document, input) {
  const type = input.type === undefined ? undefined : assetType(input);
  const assets = document.code.all().filter(([, asset]) => !type || asset.type === type);
  return { assets: assets.map(([path, asset]) => summaryOf(path, asset)) };
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export function readCodeAsset(document, input) {
  const { path, asset } = findAsset(document, input);
  const maxChars = optionalInteger(input, "maxChars", 1, MAX_PART_CHARS) ?? DEFAULT_PART_CHARS;
  const part = optionalInteger(input, "part", 1) ?? 1;
  const total = Math.max(1, Math.ceil(asset.content.length / maxChars));
  if (part > total) refuse(`There is no part ${part}; ${path} has ${total}.`);
  const [start, end] = [(part - 1) * maxChars, Math.min(part * maxChars, asset.content.length)];
  const { fileId, type, hash, runtime } = summaryOf(path, asset);
  const nextPart = part < total ? part + 1 : null;
  const pageInfo = { part, totalParts: total, nextPart, maxChars, start, end, totalChars: asset.content.length };
  return { fileId, path, type, hash, runtime, content: asset.content.slice(start, end), pageInfo };
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function writeCodeAsset(document, input, edit) {
  const type = assetType(input);
  const path = checkedPath(requiredText(input, "path"), type);
  if (typeof input.content !== "string") refuse("`content` must be a text.");
  if (input.dependencies && Object.keys(input.dependencies).length) {
    refuse("This editor installs no packages. Import the module by its full address in the script.");
  }
  const content = checkedContent(stripMarkdownFence(input.content.replaceAll("\r\n", "\n")), type);
  const old = document.code.get(path);
  if (old && old.type !== type) refuse(`${path} is a ${old.type}, not a ${type}.`);
  const runtime = { ...(old?.runtime ?? {}), ...optionalObject(input, "runtime") };
  const asset = { type, content, runtime };
  const summary = summaryOf(path, asset);
  setAsset(document, edit, path, asset);
  const note =
    type === "script" && !document.code.runScripts ? { note: "The editor keeps scripts and does not run them." } : {};
  return { ...summary, action: old ? "updated" : "created", ...note };
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {Edit} edit
 */
export function patchCodeAsset(document, input, edit) {
  const { path, asset } = findAsset(document, input);
  const { hash } = summaryOf(path, asset);
  if (requiredText(input, "expectedHash") !== hash) {
    refuse(`${path} is not what you read: its hash is ${hash} now. Read it again first.`);
  }
  let { content } = asset;
  let total = 0;
  requiredObjects(input, "replacements").forEach((replacement, index) => {
    const { text, count } = replaceIn(content, path, index + 1, replacement);
    content = text;
    total += count;
  });
  const patched = { ...asset, content: checkedContent(content, asset.type) };
  const summary = summaryOf(path, patched);
  setAsset(document, edit, path, patched);
  return { ...summary, replacements: total };
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export function inspectCodeRuntime(document, input) {
  const { ref } = findDocument(document, input.document);
  const described = document.code.all().map(([path, { type, runtime }]) => ({
    type,
    loaded: { fileId: path, path, editable: true, ...defaultRuntime(type), ...runtime },
  }));
  const of = (/** @type {string} */ type) => described.filter((one) => one.type === type).map(({ loaded }) => loaded);
  const note = document.code.runScripts
    ? ""
    : "Scripts take effect on the published page; the canvas does not run them.";
  return { pageId: ref.id, document: ref, scripts: of("script"), styles: of("style"), ...(note ? { note } : {}) };
}

/** @param {"script" | "style"} type */
function defaultRuntime(type) {
  return type === "script"
    ? { placement: "head", format: "classic", timing: "defer" }
    : { placement: "head", media: "all" };
}

/**
 * Set an asset as one step of the editor's undo, which has no place for code: a mark on the page stands for it.
 * @param {EditorDocument} document
 * @param {Edit} edit
 * @param {string} path
 * @param {CodeAsset} asset
 */
function setAsset(document, edit, path, asset) {
  edit.apply({ op: "code", path, to: asset });
  const { body } = document;
  if (body.get("fermataCode") === undefined) body.set("fermataCode", 0, { silent: true });
  body.set("fermataCode", body.get("fermataCode") + 1);
}

/**
 * @param {string} path
 * @param {CodeAsset} asset
 */
function summaryOf(path, { type, content, runtime }) {
  return {
    fileId: path,
    path,
    type,
    contentChars: content.length,
    bytes: new TextEncoder().encode(content).length,
    hash: hashText(content),
    generated: false,
    ejected: false,
    runtime: { ...defaultRuntime(type), ...runtime },
  };
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
function findAsset(document, input) {
  const path = optionalText(input, "fileId") || optionalText(input, "path");
  if (!path) refuse("Name the asset by `path` or `fileId`; list_code_assets lists both.");
  const asset = document.code.get(path);
  if (asset) return { path, asset };
  const listed = document.code.all().map(([own]) => own);
  const there = listed.length ? `There are: ${listed.join(", ")}.` : "The site has none.";
  return refuse(`There is no script or style sheet ${path} here. ${there}`);
}

/**
 * @param {ToolInput} input
 * @returns {"script" | "style"}
 */
function assetType({ type }) {
  return type === "script" || type === "style" ? type : refuse("`type` is `script` or `style`.");
}

/**
 * @param {string} path
 * @param {"script" | "style"} type
 */
function checkedPath(path, type) {
  const isLocal =
    /^[\w. ()+@/-]+$/.test(path) && !path.startsWith("/") && !path.split("/").some((part) => /^\.|^$/.test(part));
  if (!isLocal) refuse(`${path} is not a path below the folder of the page, such as scripts/menu.js or site.css.`);
  if (!EXTENSIONS[type].test(path))
    refuse(`The path of a ${type} ends with ${type === "style" ? ".css" : ".js or .mjs"}.`);
  return path;
}

/**
 * @param {string} content
 * @param {"script" | "style"} type
 */
function checkedContent(content, type) {
  if (content.length > MAX_CHARS) refuse(`A ${type} may have ${MAX_CHARS / 1000} KB.`);
  if (type === "style") checkBalanced(content);
  else if (/<\/script/i.test(content)) refuse("A script must not contain </script>. Write it as <\\/script>.");
  return content;
}

/**
 * @param {string} content
 * @param {string} path
 * @param {number} number
 * @param {ToolInput} replacement
 */
function replaceIn(content, path, number, replacement) {
  const oldText = requiredText(replacement, "oldText");
  const { newText } = replacement;
  if (typeof newText !== "string") refuse(`\`newText\` of replacement ${number} must be a text.`);
  const pieces = content.split(oldText);
  const count = pieces.length - 1;
  if (!count) refuse(`The old text of replacement ${number} is not in ${path}. Nothing was replaced.`);
  if (count > 1 && replacement.replaceAll !== true) {
    refuse(
      `The old text of replacement ${number} occurs ${count} times in ${path}. Include more of the text around it, or ` +
        "set replaceAll. Nothing was replaced.",
    );
  }
  return { text: pieces.join(oldText.includes("`") ? newText : stripMarkdownFence(newText)), count };
}
