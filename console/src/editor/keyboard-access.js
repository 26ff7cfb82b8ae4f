/** What GrapesJS leaves to the mouse: blocks are added by a click or a key, and layers are chosen with keys. */

/** The attributes of a block, so that it is reached and announced as a button. */
export const BLOCK_ATTRIBUTES = { role: "button", tabindex: "0" };
/** What is pressed of a layer. */
export const LAYER = "[data-toggle-select]";
/** Where GrapesJS's keys (undo, copy, paste) work besides its own defaults: nobody types there. */
export const NOT_TEXT = [
  "button",
  "a",
  "input[type=checkbox]",
  "input[type=radio]",
  LAYER,
  ".gjs-block",
  "[role=button]",
];

/**
 * Add a block to the selected element; behind it, where it takes none; or at the end of the page.
 *
 * @param {any} block
 * @param {any} editor
 */
export function addBlock(block, editor) {
  const content = block.get("content");
  const { target, at } = findPlace(editor, content);
  const [added] = target.append(content, at === undefined ? {} : { at });
  if (!added) return;
  editor.select(added);
  editor.Canvas.scrollTo(added);
  if (block.get("activate")) added.trigger("active");
}

/** @param {any} editor @param {any} content */
function findPlace(editor, content) {
  const takes = (/** @type {any} */ target) => target && editor.Components.canMove(target, content).result;
  const selected = editor.getSelected();
  if (takes(selected)) return { target: selected };
  const parent = selected?.parent();
  if (takes(parent)) return { target: parent, at: selected.index() + 1 };
  return { target: editor.getWrapper() };
}

/**
 * Let Enter and the space bar do what a click does, and the arrow keys go through the layers and open them.
 *
 * @param {HTMLElement} blocks
 * @param {HTMLElement} layers
 */
export function addKeys(blocks, layers) {
  blocks.addEventListener("keydown", (event) => clickOnKey(event, ".gjs-block"));
  layers.addEventListener("keydown", (event) => {
    clickOnKey(event, LAYER);
    moveOnKey(event, layers);
  });
  const mark = () => {
    for (const layer of layers.querySelectorAll(`${LAYER}:not([tabindex])`)) {
      layer.setAttribute("tabindex", "0");
      layer.setAttribute("role", "button");
    }
    for (const layer of layers.querySelectorAll(LAYER)) describeLayer(layer);
  };
  new MutationObserver(mark).observe(layers, { childList: true, subtree: true, attributeFilter: ["class"] });
  mark();
}

/**
 * Say whether a layer is chosen, and whether the layers in it are shown.
 *
 * @param {Element} layer
 */
function describeLayer(layer) {
  const { classList } = layer.parentElement ?? layer;
  const isEmpty = classList.contains("gjs-layer-no-chld") || !layer.querySelector("[data-toggle-open]");
  setIfChanged(layer, "aria-pressed", String(classList.contains("gjs-selected")));
  setIfChanged(layer, "aria-expanded", isEmpty ? null : String(classList.contains("open")));
}

/** @param {Element} element @param {string} name @param {string | null} value */
export function setIfChanged(element, name, value) {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** @param {KeyboardEvent} event @param {string} selector */
export function clickOnKey(event, selector) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (!["Enter", " "].includes(event.key) || !target.matches(selector)) return;
  event.preventDefault();
  target.click();
}

/** @param {KeyboardEvent} event @param {HTMLElement} layers */
function moveOnKey(event, layers) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (!target.matches(LAYER) || event.altKey) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const isOpen = target.parentElement?.classList.contains("open") ?? false;
  const toggles = (event.key === "ArrowRight" && !isOpen) || (event.key === "ArrowLeft" && isOpen);
  if (!step && !toggles) return;
  event.preventDefault();
  if (toggles) target.querySelector(/** @type {any} */ ("[data-toggle-open]")).click();
  if (!step) return;
  const shown = /** @type {HTMLElement[]} */ ([...layers.querySelectorAll(LAYER)]).filter(
    (layer) => layer.offsetParent,
  );
  shown[shown.indexOf(target) + step]?.focus();
}
