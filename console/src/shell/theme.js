/** Light and dark: the system's setting, unless a person has chosen. */

const KEY = "fermata-theme";
const NEXT = { "": "light", light: "dark", dark: "" };
const NAMES = { "": "System", light: "Light", dark: "Dark" };

/** @typedef {keyof typeof NEXT} Theme */

/** @returns {Theme} */
function storedTheme() {
  const stored = localStorage.getItem(KEY) ?? "";
  return stored in NEXT ? /** @type {Theme} */ (stored) : "";
}

export function applyTheme(theme = storedTheme()) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  dispatchEvent(new Event("fermata-theme"));
}

export function nextTheme() {
  const theme = /** @type {Theme} */ (NEXT[storedTheme()]);
  if (theme) localStorage.setItem(KEY, theme);
  else localStorage.removeItem(KEY);
  applyTheme(theme);
}

export function themeName() {
  return NAMES[storedTheme()];
}
