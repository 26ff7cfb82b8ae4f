/** The style tab for whoever has only keys: what GrapesJS leaves to the mouse becomes buttons with names. */

import { words } from "../words/index.js";
import { clickOnKey, setIfChanged } from "./keyboard-access.js";

const TITLE = "[data-sector-title]";
const CLASS = ".gjs-clm-tag";
/** @type {Record<string, (element: Element) => string | null>} What is pressed, and its name; null where its own words are. */
const BUTTONS = {
  [TITLE]: () => null,
  "[data-add]": () => words.editor.addClass,
  "[data-tag-remove]": (element) => words.editor.removeClass(className(element)),
  "[data-tag-status]": (element) => words.editor.useClass(className(element)),
  "[data-clear-style]": () => words.editor.clearStyle,
  "[data-add-layer]": (element) => words.editor.addLayer(propertyName(element)),
};
/** @type {Record<string, (element: Element) => string>} What a value is written into or chosen in, and its name. */
const FIELDS = {
  "[data-states]": () => words.editor.state,
  ".gjs-sm-property :is(input:not([type=radio]), select):not(.gjs-input-unit)": propertyName,
  ".gjs-sm-property .gjs-input-unit": (element) => words.editor.unitOf(propertyName(element)),
};
const PRESSED = Object.keys(BUTTONS).join();

/** @param {Element} element */
function className(element) {
  return element.closest(CLASS)?.querySelector("[data-tag-name]")?.textContent?.trim() ?? "";
}

/** @param {Element} element */
function propertyName(element) {
  return element.closest(".gjs-sm-property")?.querySelector(".gjs-sm-icon")?.textContent?.trim() ?? "";
}

/** @param {HTMLElement} pane What contains the classes and the styles. */
export function addStyleKeys(pane) {
  pane.addEventListener("keydown", (event) => clickOnKey(event, PRESSED));
  const mark = () => {
    for (const [selector, name] of Object.entries(BUTTONS))
      for (const element of pane.querySelectorAll(selector)) {
        setIfChanged(element, "role", "button");
        setIfChanged(element, "tabindex", "0");
        setIfChanged(element, "aria-label", name(element));
      }
    for (const [selector, name] of Object.entries(FIELDS))
      for (const element of pane.querySelectorAll(selector)) setIfChanged(element, "aria-label", name(element));
    for (const title of pane.querySelectorAll(TITLE))
      setIfChanged(title, "aria-expanded", String(title.parentElement?.classList.contains("gjs-sm-open") ?? false));
  };
  new MutationObserver(mark).observe(pane, { childList: true, subtree: true, attributeFilter: ["class"] });
  mark();
}
