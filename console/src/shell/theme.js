/** Light and dark: the system's setting, unless a person has chosen. */

import { recall, remember } from "../storage.js";
import { words } from "../words/index.js";

const KEY = "fermata-theme";
const NEXT = { "": "light", light: "dark", dark: "" };
const NAMES = /** @type {const} */ ({ "": "system", light: "light", dark: "dark" });

/** @typedef {keyof typeof NEXT} Theme */

/** @returns {Theme} */
function storedTheme() {
  const stored = recall(KEY);
  return Object.hasOwn(NEXT, stored) ? /** @type {Theme} */ (stored) : "";
}

export function applyTheme(theme = storedTheme()) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  dispatchEvent(new Event("fermata-theme"));
}

export function nextTheme() {
  const theme = /** @type {Theme} */ (NEXT[storedTheme()]);
  remember(KEY, theme);
  applyTheme(theme);
}

export function themeName() {
  return words.shell.theme[NAMES[storedTheme()]];
}
