/** What the keys of a layer do besides choosing it: they move, delete and open its element, as the mouse does on the canvas. */

import { announce } from "../dom.js";
import { words } from "../words/index.js";
import { LAYER } from "./keyboard-access.js";

/** Elements whose texts a key has opened. @type {WeakSet<object>} */
const opened = new WeakSet();
const MOVES = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];

/**
 * Alt and an arrow key move the element: among its neighbours, out of its parent, or into the neighbour before it. Delete deletes
 * it. Enter on the chosen layer, or F2, does what a double click on the element does. Alt+H hides it in the builder or shows it
 * again, and Alt+N begins to change the layer's own name.
 *
 * @param {HTMLElement} layers
 * @param {any} editor
 */
export function addLayerKeys(layers, editor) {
  layers.addEventListener("keydown", (event) => {
    const layer = /** @type {HTMLElement} */ (event.target);
    const act = layer.matches(LAYER) && findAct(event, layer);
    if (!act) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // GrapesJS's own keys act on what is chosen, which is another element until now
    layer.click();
    const component = editor.getSelected();
    if (!component) return;
    const problem = act(component, editor, event.key);
    if (problem) announce(problem);
    else if (act === nameLayer) beginName(layers);
    else if (act !== openElement) focusChosenLayer(layers);
  });
}

/** @typedef {(component: any, editor: any, key: string) => string | void} Act Returns why it was not done. */

/** @param {KeyboardEvent} event @param {HTMLElement} layer @returns {Act | undefined} */
function findAct(event, layer) {
  if (event.altKey && MOVES.includes(event.key)) return moveElement;
  if (event.altKey && event.code === "KeyH") return toggleVisibility; // the letter itself is another one with Alt on a Mac
  if (event.altKey && event.code === "KeyN") return nameLayer;
  if (event.altKey || event.ctrlKey || event.metaKey) return undefined;
  if (event.key === "Delete" || event.key === "Backspace") return deleteElement;
  const isChosen = layer.getAttribute("aria-pressed") === "true";
  return event.key === "F2" || (event.key === "Enter" && isChosen) ? openElement : undefined;
}

/** @type {Act} */
function moveElement(component, editor, key) {
  const place = findPlaceToMove(component, key);
  if (!place || !editor.Components.canMove(place.parent, component, place.at).result) return words.editor.cannotMove;
  component.move(place.parent, { at: place.at });
  editor.select(component);
}

/** @param {any} component @param {string} key */
function findPlaceToMove(component, key) {
  const parent = component.parent();
  if (!parent) return null;
  if (key === "ArrowLeft") return parent.parent() && { parent: parent.parent(), at: parent.index() + 1 };
  const shown = parent.components().filter((/** @type {any} */ one) => one.get("layerable"));
  const at = shown.indexOf(component);
  const [before, after] = [shown[at - 1], shown[at + 1]];
  if (key === "ArrowUp") return before && { parent, at: before.index() };
  if (key === "ArrowDown") return after && { parent, at: after.index() + 1 };
  return before && { parent: before, at: before.components().length };
}

/** @type {Act} */
function deleteElement(component, editor) {
  const parent = component.parent();
  if (!component.get("removable") || !parent) return words.editor.cannotDelete;
  const next = parent.components().at(component.index() + 1);
  editor.runCommand("core:component-delete");
  editor.select(next?.get("layerable") ? next : parent);
}

/** @type {Act} */
function openElement(component, editor) {
  editor.Canvas.scrollTo(component);
  opened.add(component);
  component.trigger("active");
}

/** @type {Act} */
function toggleVisibility(component, editor) {
  const isVisible = editor.Layers.isVisible(component);
  editor.Layers.setVisible(component, !isVisible);
  announce(isVisible ? words.editor.hidden : words.editor.shown);
}

/** Choosing the layer is all: its name is opened behind that. @type {Act} */
function nameLayer() {}

/** Open the name of the chosen layer, whose keys GrapesJS handles until Enter or Escape. @param {HTMLElement} layers */
function beginName(layers) {
  const chosen = [...layers.querySelectorAll(".gjs-layer.gjs-selected")].at(-1);
  const name = /** @type {HTMLElement | null | undefined} */ (chosen?.querySelector("[data-name]"));
  if (!name) return;
  name.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
  name.addEventListener("blur", () => focusChosenLayer(layers), { once: true });
}

/** Put the focus on the layer of the chosen element, which GrapesJS has drawn anew. @param {HTMLElement} layers */
function focusChosenLayer(layers) {
  requestAnimationFrame(() => {
    const chosen = [...layers.querySelectorAll(".gjs-layer.gjs-selected")].at(-1);
    for (let each = chosen?.parentElement; each && each !== layers; each = each.parentElement)
      if (each.matches(".gjs-layer:not(.open)"))
        /** @type {HTMLElement | null} */ (each.querySelector(`${LAYER} [data-toggle-open]`))?.click();
    /** @type {HTMLElement | null | undefined} */ (chosen?.querySelector(LAYER))?.focus();
  });
}

/**
 * While a text is edited that a key has opened, the keys go to it, and Escape ends it, as it also does after a double click.
 *
 * @param {HTMLElement} layers
 * @param {any} editor
 */
export function addTextKeys(layers, editor) {
  editor.on("rte:enable", (/** @type {any} */ view) => {
    const { el, model } = view;
    const isOpenedByKey = opened.delete(model);
    const end = async (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation();
      await view.disableEditing();
      if (isOpenedByKey) focusChosenLayer(layers);
    };
    el.addEventListener("keydown", end);
    editor.once("rte:disable", () => el.removeEventListener("keydown", end));
    if (isOpenedByKey) beginAtEnd(el);
  });
}

/** @param {HTMLElement} text */
function beginAtEnd(text) {
  const window = text.ownerDocument.defaultView;
  window?.focus();
  text.focus();
  const selection = window?.getSelection();
  selection?.selectAllChildren(text);
  selection?.collapseToEnd();
}
