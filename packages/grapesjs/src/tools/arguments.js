/** Read the arguments of a tool call, and refuse what does not fit, in words for the model. */

import { refuse } from "../tool-error.js";

/** @typedef {Record<string, any>} ToolInput */

/**
 * Return a text that is not empty.
 * @param {ToolInput} input
 * @param {string} name
 * @returns {string}
 */
export function requiredText(input, name) {
  const value = input[name];
  return typeof value === "string" && value ? value : refuse(`\`${name}\` is missing: it must be a text.`);
}

/**
 * Return a text; empty if it is left out.
 * @param {ToolInput} input
 * @param {string} name
 * @returns {string}
 */
export function optionalText(input, name) {
  const value = input[name];
  if (value !== undefined && value !== null && typeof value !== "string") refuse(`\`${name}\` must be a text.`);
  return value ?? "";
}

/**
 * @param {ToolInput} input
 * @param {string} name
 * @param {number} [min]
 * @param {number} [max]
 * @returns {number | undefined}
 */
export function optionalInteger(input, name, min = 0, max = undefined) {
  const value = input[name];
  if (value === undefined || value === null) return undefined;
  if (!Number.isInteger(value) || value < min || (max !== undefined && value > max)) {
    refuse(`\`${name}\` must be a whole number from ${min} ${max === undefined ? "up" : `to ${max}`}.`);
  }
  return value;
}

/**
 * Return a number, which may be written as a text.
 * @param {ToolInput} input
 * @param {string} name
 * @returns {number | undefined}
 */
export function optionalNumber(input, name) {
  const value = input[name];
  if (value === undefined || value === null) return undefined;
  const number = typeof value === "string" && value.trim() ? Number(value) : value;
  if (typeof number !== "number" || !Number.isFinite(number)) refuse(`\`${name}\` must be a number.`);
  return number;
}

/**
 * @param {ToolInput} input
 * @param {string} name
 * @returns {ToolInput} empty if it is left out
 */
export function optionalObject(input, name) {
  const value = input[name];
  if (value === undefined || value === null) return {};
  return typeof value === "object" && !Array.isArray(value) ? value : refuse(`\`${name}\` must be an object.`);
}

/**
 * @param {ToolInput} input
 * @param {string} name
 * @returns {ToolInput[]}
 */
export function requiredObjects(input, name) {
  const value = input[name];
  const isList = Array.isArray(value) && value.length && value.every((one) => one && typeof one === "object");
  return isList ? value : refuse(`\`${name}\` must be a list of objects, with at least one in it.`);
}

/**
 * Return a list of texts. A single text is a list of one.
 * @param {ToolInput} input
 * @param {string} name
 * @returns {string[]}
 */
export function requiredTexts(input, name) {
  const value = typeof input[name] === "string" ? [input[name]] : input[name];
  const isList = Array.isArray(value) && value.length && value.every((one) => typeof one === "string" && one);
  return isList ? value : refuse(`\`${name}\` must be a list of texts, with at least one in it.`);
}
