/** The tool that reports how a page looks: its picture, its sizes, what overflows. */

import { describeBreakpoints } from "../snapshot.js";
import { isTextNode, tagOf, textOf, walk } from "../state/component-tree.js";
import { refuse } from "../tool-error.js";
import { optionalText } from "./arguments.js";
import { takePicture } from "./picture.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../state/component-tree.js").Component} Component */
/** @typedef {import("./arguments.js").ToolInput} ToolInput */

/** @type {import("./picture.js").Picture} */
const NO_PICTURE = { report: { status: "unavailable", error: "No picture was asked for." } };
const MAX_BOXES = 120;
const MAX_WARNINGS = 40;
const MAX_TEXT_CHARS = 80;
/** How long the canvas takes to change its width; GrapesJS animates it. */
const MAX_RESIZE_MS = 1_000;

/**
 * Report how the open page looks at a breakpoint, and put the canvas back.
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export async function renderSnapshot(document, input) {
  const { editor } = document;
  const wanted = selectBreakpoint(editor, optionalText(input, "breakpointId"));
  const nodeId = optionalText(input, "nodeId");
  const scope = nodeId ? document.ids.find(nodeId) : document.body;
  if (!scope.getEl()) refuse("This node is not on the canvas. Show its page with open_document first.");
  const previous = editor.getDevice();
  if (previous !== wanted.id && document.typing.component) {
    refuse("The user is writing, so the canvas keeps its width. Ask for the active breakpoint.");
  }
  try {
    if (previous !== wanted.id) await changeWidth(editor, wanted.id);
    const { hiddenImages, ...layout } = describeLayout(document, scope);
    const picture = input.captureScreenshot === false ? NO_PICTURE : await takePicture(scope.getEl(), hiddenImages);
    const { label } = wanted;
    const width = editor.Canvas.getWindow().innerWidth;
    const capturedAt = new Date().toISOString();
    const shown = { breakpointId: wanted.id, label, width, ...(nodeId ? { nodeId } : {}), capturedAt };
    const images = picture.image ? { images: [picture.image] } : {};
    return { data: { ...shown, layout, screenshot: picture.report }, ...images };
  } finally {
    if (previous !== wanted.id) editor.Devices.select(previous);
  }
}

/**
 * @param {any} editor
 * @param {string} id
 */
function selectBreakpoint(editor, id) {
  const all = describeBreakpoints(editor);
  const wanted = id || String(editor.getDevice());
  const listed = () => all.map((/** @type {{id: string}} */ one) => one.id).join(", ");
  const found = all.find((/** @type {{id: string}} */ one) => one.id === wanted);
  return found ?? refuse(`There is no breakpoint ${wanted}. There are: ${listed()}.`);
}

/**
 * @param {any} editor
 * @param {string} id
 */
async function changeWidth(editor, id) {
  editor.Devices.select(id);
  const frame = editor.Canvas.getFrameEl();
  const end = performance.now() + MAX_RESIZE_MS;
  let [width, stable] = [-1, 0];
  while (stable < 3 && performance.now() < end) {
    await new Promise((done) => setTimeout(done, 50));
    stable = frame.offsetWidth === width ? stable + 1 : 0;
    width = frame.offsetWidth;
  }
}

/**
 * @param {EditorDocument} document
 * @param {Component} scope
 */
function describeLayout(document, scope) {
  const view = document.editor.Canvas.getWindow();
  /** @type {object[]} */
  const boxes = [];
  /** @type {{nodeId: string, warning: string}[]} */
  const warnings = [];
  let hiddenImages = 0;
  walk(scope, (component) => {
    const element = component.getEl?.();
    if (isTextNode(component) || !element?.getBoundingClientRect) return;
    const nodeId = document.ids.of(component);
    const box = element.getBoundingClientRect();
    boxes.push(describeBox(component, nodeId, box, view));
    for (const warning of elementWarnings(element, box, view)) warnings.push({ nodeId, warning });
    if (element.localName === "img") hiddenImages++;
  });
  return {
    source: "canvas",
    viewport: { width: view.innerWidth, height: view.innerHeight },
    pageHeight: view.document.documentElement.scrollHeight,
    boxes: boxes.slice(0, MAX_BOXES),
    boxesLeftOut: Math.max(0, boxes.length - MAX_BOXES),
    warnings: warnings.slice(0, MAX_WARNINGS),
    warningsLeftOut: Math.max(0, warnings.length - MAX_WARNINGS),
    hiddenImages,
  };
}

/**
 * @param {Component} component
 * @param {string} nodeId
 * @param {DOMRect} box
 * @param {Window} view
 */
function describeBox(component, nodeId, box, view) {
  const tag = tagOf(component);
  const [x, y, width, height] = [box.x + view.scrollX, box.y + view.scrollY, box.width, box.height].map(Math.round);
  const text = /^h[1-6]$/.test(tag) ? textOf(component).replace(/\s+/g, " ").trim().slice(0, MAX_TEXT_CHARS) : "";
  return { nodeId, tag, x, y, width, height, ...(text ? { text } : {}) };
}

/**
 * @param {any} element
 * @param {DOMRect} box
 * @param {Window & typeof globalThis} view
 */
function* elementWarnings(element, box, view) {
  const style = view.getComputedStyle(element);
  if (style.display === "none" || style.visibility === "hidden") yield "It cannot be seen.";
  if (box.right + view.scrollX > view.innerWidth + 1)
    yield `It reaches ${Math.round(box.right - view.innerWidth)} px over the right edge.`;
  if (element.scrollWidth > element.clientWidth + 1 && style.overflowX === "hidden" && element.clientWidth) {
    yield "Its content is wider than it is and cut off.";
  }
  if (element.localName === "img") {
    if (element.complete && !element.naturalWidth) yield "The image was not loaded.";
    if (!element.hasAttribute("alt")) yield "The image has no alt text.";
  }
}
