/**
 * The design tokens of the panel and the console: one type scale, one accent, light and dark. A page changes them by setting
 * the properties on `fermata-panel` or on any element around it.
 */

const LIGHT = `
  --fermata-surface: #ffffff;
  --fermata-surface-2: #f6f6f4;
  --fermata-surface-3: #ecebe7;
  --fermata-line: #dfdeda;
  --fermata-ink: #1c1b19;
  --fermata-ink-2: #55534e;
  --fermata-ink-3: #6e6c66;
  --fermata-accent: #3a5bd0;
  --fermata-accent-ink: #ffffff;
  --fermata-accent-soft: #e9edfb;
  --fermata-good: #2a7046;
  --fermata-good-soft: #e4f2e9;
  --fermata-warn: #8a5a00;
  --fermata-warn-soft: #fbf1dc;
  --fermata-bad: #b3261e;
  --fermata-bad-soft: #fbe9e7;
  --fermata-shadow: 0 1px 2px rgb(0 0 0 / 6%), 0 8px 28px rgb(0 0 0 / 10%);
  color-scheme: light;
`;
const DARK = `
  --fermata-surface: #1b1b1d;
  --fermata-surface-2: #242427;
  --fermata-surface-3: #303034;
  --fermata-line: #3a3a3f;
  --fermata-ink: #f0efec;
  --fermata-ink-2: #b9b7b1;
  --fermata-ink-3: #9b9993;
  --fermata-accent: #8ea6ff;
  --fermata-accent-ink: #10142a;
  --fermata-accent-soft: #2a3150;
  --fermata-good: #7cc796;
  --fermata-good-soft: #1f3528;
  --fermata-warn: #e5bd6b;
  --fermata-warn-soft: #3a311d;
  --fermata-bad: #ff9a90;
  --fermata-bad-soft: #40231f;
  --fermata-shadow: 0 1px 2px rgb(0 0 0 / 40%), 0 8px 28px rgb(0 0 0 / 45%);
  color-scheme: dark;
`;
const SIZES = `
  --fermata-font: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  --fermata-mono: ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, monospace;
  --fermata-text-s: 12px;
  --fermata-text-m: 14px;
  --fermata-text-l: 16px;
  --fermata-text-xl: 20px;
  --fermata-text-xxl: 28px;
  --fermata-leading: 1.5;
  --fermata-space: 8px;
  --fermata-radius: 10px;
  --fermata-radius-s: 6px;
  --fermata-motion: 160ms cubic-bezier(.2, 0, 0, 1);
`;

/**
 * The style sheet that defines the tokens for whatever a selector selects. `data-theme="light"` or `"dark"` on it overrides
 * the system's setting.
 *
 * @param {string} selector
 * @param {(theme: string) => string} themed The selector where a theme is chosen.
 */
export function tokensCss(selector, themed) {
  return `${selector} { ${SIZES} ${LIGHT} }
@media (prefers-color-scheme: dark) { ${selector} { ${DARK} } }
${themed("light")} { ${LIGHT} }
${themed("dark")} { ${DARK} }
@media (prefers-reduced-motion: reduce) { ${selector} { --fermata-motion: 0ms linear; } }`;
}

/** Define the tokens for the whole page. */
export function adoptTokens() {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(tokensCss(":root", (theme) => `:root[data-theme="${theme}"]`));
  document.adoptedStyleSheets.push(sheet);
}
