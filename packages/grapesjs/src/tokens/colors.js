/** Read and write colours, and compute their shades, tints and transparencies. */

import { formatNumber } from "./numbers.js";

const TRANSPARENCIES = [5, 10, 20, 30, 40, 50, 60, 70, 80, 90];
export const SHADE_COUNT = 4;
/** The share of the way to black or white that one more shade or tint would be at. */
const MAX_SHADE_SHARE = 0.8;
const DIGITS = "(?:\\d+(?:\\.\\d+)?|\\.\\d+)";
const SIGNED = `([-+]?${DIGITS})`;
const HSL = new RegExp(
  `^hsla?\\(\\s*${SIGNED}(?:deg)?\\s*,\\s*${SIGNED}%\\s*,\\s*${SIGNED}%(?:\\s*,\\s*${SIGNED})?\\s*\\)$`,
  "i",
);
const RGB = new RegExp(
  `^rgba?\\(\\s*(${DIGITS})(?:\\s*,\\s*|\\s+)(${DIGITS})(?:\\s*,\\s*|\\s+)(${DIGITS})\\s*(?:[,/]\\s*(${DIGITS}%?))?\\s*\\)$`,
  "i",
);

/** @typedef {{hue: number, saturation: number, lightness: number, opacity: number}} Color in degrees, percent, 0 to 1 */

/** @param {Color} color */
export function formatColor({ hue, saturation, lightness, opacity }) {
  const [h, s, l, a] = [hue, saturation, lightness, opacity].map(formatNumber);
  return `hsla(${h}, ${s}%, ${l}%, ${a})`;
}

/**
 * Return the variants of a colour by name: `5` to `90` (opacity), `d-1` to `d-4` (shades), `l-1` to `l-4` (tints).
 * @param {Color} color
 * @returns {[string, Color][]}
 */
export function variantsOf(color) {
  const numbers = Array.from({ length: SHADE_COUNT }, (_, index) => index + 1);
  const share = (/** @type {number} */ number) => (MAX_SHADE_SHARE * number) / (SHADE_COUNT + 1);
  return [
    ...TRANSPARENCIES.map((percent) => variant(String(percent), { ...color, opacity: percent / 100 })),
    ...numbers.map((number) => variant(`d-${number}`, { ...color, lightness: color.lightness * (1 - share(number)) })),
    ...numbers.map((number) => {
      const lightness = color.lightness + (100 - color.lightness) * share(number);
      return variant(`l-${number}`, { ...color, lightness });
    }),
  ];
}

/**
 * @param {string} name
 * @param {Color} color
 * @returns {[string, Color]}
 */
function variant(name, color) {
  return [name, color];
}

/**
 * Parse a colour; undefined for a notation without variants, such as a name or `oklch(…)`.
 * @param {string} text
 * @returns {Color | undefined}
 */
export function parseColor(text) {
  const plain = text.trim();
  const hsl = HSL.exec(plain);
  if (hsl) {
    const [hue, saturation, lightness, opacity] = hsl.slice(1).map((part) => Number(part ?? 1));
    const turned = ((hue % 360) + 360) % 360;
    return {
      hue: turned,
      saturation: clamp(saturation, 100),
      lightness: clamp(lightness, 100),
      opacity: clamp(opacity, 1),
    };
  }
  const hex = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(plain)?.[1];
  if (hex) {
    const digits = hex.length === 6 ? hex : [...hex].map((digit) => digit + digit).join("");
    const [red, green, blue] = [0, 2, 4].map((start) => Number.parseInt(digits.slice(start, start + 2), 16));
    return colorFromRgb(red, green, blue, 1);
  }
  const rgb = RGB.exec(plain);
  if (!rgb) return undefined;
  const [red, green, blue] = rgb.slice(1, 4).map((part) => clamp(Number(part), 255));
  const opacity = rgb[4] ?? "1";
  const share = Number.parseFloat(opacity) / (opacity.endsWith("%") ? 100 : 1);
  return colorFromRgb(red, green, blue, clamp(share, 1));
}

/**
 * @param {number} red
 * @param {number} green
 * @param {number} blue
 * @param {number} opacity
 * @returns {Color}
 */
function colorFromRgb(red, green, blue, opacity) {
  const [r, g, b] = [red / 255, green / 255, blue / 255];
  const [highest, lowest] = [Math.max(r, g, b), Math.min(r, g, b)];
  const [lightness, spread] = [(highest + lowest) / 2, highest - lowest];
  if (spread === 0) return { hue: 0, saturation: 0, lightness: lightness * 100, opacity };
  const saturation = spread / (lightness > 0.5 ? 2 - highest - lowest : highest + lowest);
  let sextant = highest === b ? (r - g) / spread + 4 : 0;
  if (highest === g) sextant = (b - r) / spread + 2;
  if (highest === r) sextant = (g - b) / spread + (g < b ? 6 : 0);
  return { hue: sextant * 60, saturation: saturation * 100, lightness: lightness * 100, opacity };
}

/**
 * @param {number} value
 * @param {number} max
 */
function clamp(value, max) {
  return Math.max(0, Math.min(max, value));
}
