/** Read what a person has pasted to register a tool. */

import { words } from "./words/index.js";

/** @typedef {Record<string, any>} Json */

/**
 * A registration of a manifest alone and the address beside it, or of the whole file, whose members count unless the form has others.
 *
 * @param {string} text
 * @param {string} endpoint May be empty.
 * @param {Record<string, string>} headers
 * @param {boolean} replace
 * @returns {any}
 */
export function readRegistration(text, endpoint, headers, replace) {
  const parsed = parseObject(text);
  const file = isObject(parsed.manifest) ? parsed : { manifest: parsed };
  const own = {
    ...(endpoint && { endpoint }),
    ...(Object.keys(headers).length > 0 && { staticHeaders: { ...file.staticHeaders, ...headers } }),
    ...(replace && { replace }),
  };
  const registration = { ...file, ...own };
  if (!registration.endpoint) throw new Error(words.tools.needsEndpoint);
  return registration;
}

/**
 * @param {string} text One `name: value` a line.
 * @returns {Record<string, string>}
 */
export function readHeaderLines(text) {
  /** @type {[string, string][]} */
  const headers = [];
  for (const line of text.split("\n").map((each) => each.trim())) {
    if (!line) continue;
    const colon = line.indexOf(":");
    if (colon < 1) throw new Error(words.tools.notHeader(line.slice(0, 20)));
    headers.push([line.slice(0, colon).trim(), line.slice(colon + 1).trim()]);
  }
  return Object.fromEntries(headers);
}

/** @param {string} text @returns {Json} */
function parseObject(text) {
  try {
    const value = JSON.parse(text);
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new Error(words.tools.notJson);
}

/** @param {any} value */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
