/** The tools that set the scales of type and spacing. */

import { roundNumber } from "../tokens/numbers.js";
import { findScales, rootFontPixels, setCustomProperties } from "../tokens/properties.js";
import { DEFAULT_SPACING_SCALE, DEFAULT_TYPE_SCALE, scaleVariables } from "../tokens/scales.js";
import { refuse } from "../tool-error.js";
import { optionalInteger, optionalNumber, optionalObject, optionalText } from "./arguments.js";

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("../tokens/properties.js").PageScale} PageScale */
/** @typedef {import("../tokens/scales.js").TokenScale} TokenScale */
/** @typedef {import("./arguments.js").ToolInput} ToolInput */

const MAX_STEPS = 100;
const MAX_NUMBER = 10_000;

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export function setTypeScale(document, input) {
  return setScale(document, input, "typography", DEFAULT_TYPE_SCALE, "fontSize");
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 */
export function setSpacingScale(document, input) {
  return setScale(document, input, "spacing", DEFAULT_SPACING_SCALE, "size");
}

/**
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {"typography" | "spacing"} family
 * @param {TokenScale} defaults
 * @param {string} sizeMember
 */
function setScale(document, input, family, defaults, sizeMember) {
  const pageScale = selectScale(document, input, family, defaults);
  const isNew = !pageScale.sizes.size;
  const start = isNew ? { ...defaults, naming: pageScale.naming } : scaleFromPage(pageScale, defaults);
  const scale = withArguments(start, input, sizeMember);
  const values = new Map(scaleVariables(scale, rootFontPixels(document)));
  if ([...values.values()].some((value) => /NaN|Infinity|e\+/.test(value))) {
    refuse("These numbers make no scale. A ratio is usually between 1 and 2.");
  }
  setCustomProperties(document, values);
  return {
    groupId: scale.naming,
    action: isNew ? "created" : "updated",
    namingConvention: scale.naming,
    generatedVars: [...values.keys()],
    used: {
      steps: scale.steps.join(","),
      baseScaleIndex: scale.baseIndex,
      min: { [sizeMember]: scale.minSize, scaleRatio: scale.minRatio },
      max: { [sizeMember]: scale.maxSize, scaleRatio: scale.maxRatio },
    },
  };
}

/**
 * Return the scale that the call names, or else the first one of the family, or else a new one without sizes.
 * @param {EditorDocument} document
 * @param {ToolInput} input
 * @param {"typography" | "spacing"} family
 * @param {TokenScale} defaults
 * @returns {PageScale}
 */
function selectScale(document, input, family, defaults) {
  const scales = findScales(document).filter((scale) => scale.family === family);
  const names = scales.map(({ naming }) => naming);
  const groupId = optionalText(input, "groupId");
  if (groupId && !names.includes(groupId)) {
    refuse(`There is no ${family} scale ${groupId} here. There is: ${names.join(", ") || "none"}.`);
  }
  const naming = optionalText(input, "namingConvention").trim().replace(/^--/, "");
  if (naming && !/^[A-Za-z][\w{} -]*$/.test(naming)) {
    refuse("`namingConvention` is the beginning of a variable's name, such as text or space.");
  }
  const name = groupId || naming || names[0] || defaults.naming;
  const found = scales.find((scale) => scale.naming === name);
  if (found && (!naming || naming === found.naming)) return found;
  return { family, naming: naming || name, sizes: new Map() };
}

/**
 * Derive a scale from the page's sizes, as far as two neighbouring steps determine it.
 * @param {PageScale} pageScale
 * @param {TokenScale} defaults
 * @returns {TokenScale}
 */
function scaleFromPage({ naming, sizes }, defaults) {
  const [steps, ranges] = [[...sizes.keys()], [...sizes.values()]];
  const middle = steps.indexOf("m");
  const baseIndex = Math.min(middle < 0 ? defaults.baseIndex : middle, steps.length - 2);
  const [[minSize, maxSize], [nextMin, nextMax]] = [ranges[baseIndex], ranges[baseIndex + 1]];
  const [minRatio, maxRatio] = [minSize ? nextMin / minSize : 0, maxSize ? nextMax / maxSize : 0];
  if (!minRatio || !maxRatio) return { ...defaults, naming, steps };
  const [a, b, c, d] = [minSize, minRatio, maxSize, maxRatio].map(roundNumber);
  return { naming, steps, baseIndex, minSize: a, minRatio: b, maxSize: c, maxRatio: d };
}

/**
 * Return a scale with what the call sets. What it leaves out stays.
 * @param {TokenScale} scale
 * @param {ToolInput} input
 * @param {string} sizeMember
 * @returns {TokenScale}
 */
function withArguments(scale, input, sizeMember) {
  const steps = optionalText(input, "steps")
    .split(",")
    .map((step) => step.trim())
    .filter(Boolean);
  if (steps.length > MAX_STEPS || !steps.every((step) => /^[\w-]+$/.test(step))) {
    refuse("`steps` are names of letters and digits with commas between them, such as s,m,l.");
  }
  const [narrow, wide] = [optionalObject(input, "min"), optionalObject(input, "max")];
  return {
    naming: scale.naming,
    steps: steps.length ? steps : scale.steps,
    baseIndex: optionalInteger(input, "baseScaleIndex") ?? scale.baseIndex,
    minSize: positiveNumber(narrow, sizeMember, scale.minSize),
    minRatio: positiveNumber(narrow, "scaleRatio", scale.minRatio),
    maxSize: positiveNumber(wide, sizeMember, scale.maxSize),
    maxRatio: positiveNumber(wide, "scaleRatio", scale.maxRatio),
  };
}

/**
 * @param {ToolInput} input
 * @param {string} name
 * @param {number} fallback
 */
function positiveNumber(input, name, fallback) {
  const value = optionalNumber(input, name);
  if (value !== undefined && !(value > 0 && value <= MAX_NUMBER)) refuse(`\`${name}\` must be a number above 0.`);
  return value ?? fallback;
}
