/** Compute fluid scales of type and of spacing. */

import { formatNumber, roundNumber } from "./numbers.js";

export const MIN_SCREEN_PIXELS = 320;
export const MAX_SCREEN_PIXELS = 1400;
const NUMBER = "([-+]?(?:\\d+(?:\\.\\d+)?|\\.\\d+))";
const FLUID = new RegExp(`^clamp\\([-.\\d]+rem, calc\\(${NUMBER}vw \\+ ${NUMBER}rem\\), [-.\\d]+rem\\)$`);
const ROUNDING_OFFSETS = [0.0, 0.002, -0.002, 0.004, -0.004, 0.001, -0.001, 0.003, -0.003];

/**
 * A scale of lengths in pixels. Each step is its ratio times as large as the one before.
 * @typedef {object} TokenScale
 * @property {string} naming
 * @property {string[]} steps
 * @property {number} baseIndex the step that has the sizes
 * @property {number} minSize
 * @property {number} minRatio
 * @property {number} maxSize
 * @property {number} maxRatio
 */

/** @type {TokenScale} */
export const DEFAULT_TYPE_SCALE = {
  naming: "text",
  steps: ["xs", "s", "m", "l", "xl", "2xl", "3xl", "4xl"],
  baseIndex: 2,
  minSize: 16,
  minRatio: 1.125,
  maxSize: 18,
  maxRatio: 1.333,
};
/** @type {TokenScale} */
export const DEFAULT_SPACING_SCALE = {
  naming: "space",
  steps: ["4xs", "3xs", "2xs", "xs", "s", "m", "l", "xl", "2xl", "3xl", "4xl"],
  baseIndex: 5,
  minSize: 16,
  minRatio: 1.25,
  maxSize: 28,
  // biome-ignore lint/suspicious/noApproximativeNumericConstant: the scale's own number, as every editor has it
  maxRatio: 1.414,
};

/**
 * Return name and value of each step's variable.
 * @param {TokenScale} scale
 * @param {number} rootPixels the size of 1rem
 * @returns {[string, string][]}
 */
export function scaleVariables(scale, rootPixels) {
  return scale.steps.map((step, index) => {
    const exponent = index - scale.baseIndex;
    const minSize = scale.minSize * scale.minRatio ** exponent;
    const maxSize = scale.maxSize * scale.maxRatio ** exponent;
    return [scaleVariable(scale.naming, step), fluidLength(minSize, maxSize, rootPixels)];
  });
}

/**
 * @param {string} naming may say where the step goes: `space-{step}`
 * @param {string} step
 */
function scaleVariable(naming, step) {
  const name = naming.includes("{step}") ? naming.replace("{step}", step) : `${naming}-${step}`;
  return `--${name.replace(/\s/g, "-")}`;
}

/**
 * Return a length that grows with the screen between two sizes in pixels, written in rem.
 * @param {number} minSize
 * @param {number} maxSize
 * @param {number} rootPixels
 */
export function fluidLength(minSize, maxSize, rootPixels) {
  const slope = (maxSize - minSize) / (MAX_SCREEN_PIXELS - MIN_SCREEN_PIXELS);
  const [low, start, high] = [minSize, minSize - slope * MIN_SCREEN_PIXELS, maxSize].map(
    (pixels) => `${formatNumber(roundNumber(pixels) / rootPixels)}rem`,
  );
  return `clamp(${low}, calc(${formatNumber(slope * 100)}vw + ${start}), ${high})`;
}

/**
 * Return sizes in pixels from which `fluidLength` makes this value. It is rounded, so several sizes make it.
 * @param {string} value
 * @param {number} rootPixels
 * @returns {[number, number] | undefined}
 */
export function parseFluidLength(value, rootPixels) {
  const match = FLUID.exec(value);
  if (!match) return undefined;
  for (const slopeOffset of ROUNDING_OFFSETS) {
    for (const startOffset of ROUNDING_OFFSETS) {
      const slope = (Number(match[1]) + slopeOffset) / 100;
      const start = (Number(match[2]) + startOffset) * rootPixels;
      const [min, max] = [start + slope * MIN_SCREEN_PIXELS, start + slope * MAX_SCREEN_PIXELS];
      if (fluidLength(min, max, rootPixels) === value) return [min, max];
    }
  }
  return undefined;
}
