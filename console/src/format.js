/** Numbers and times as people read them, in the language of the page. */

import { LANGUAGE, words } from "./words/index.js";

/** @param {number} amount In dollars; small ones with the digits that say something. */
export function formatCost(amount) {
  const digits = amount === 0 || amount >= 1 ? 2 : Math.min(6, Math.max(2, 1 - Math.floor(Math.log10(amount))));
  const options = { style: "currency", currency: "USD", minimumFractionDigits: 2, maximumFractionDigits: digits };
  return new Intl.NumberFormat(LANGUAGE, /** @type {any} */ (options)).format(amount);
}

/** @param {number} count */
export function formatCount(count) {
  return new Intl.NumberFormat(LANGUAGE).format(count);
}

/** @param {string} day An ISO day, which belongs to no zone. */
export function formatDay(day) {
  const options = /** @type {const} */ ({ day: "numeric", month: "short", timeZone: "UTC" });
  return new Intl.DateTimeFormat(LANGUAGE, options).format(new Date(`${day}T00:00:00Z`));
}

/** @param {string | number | null | undefined} instant */
export function formatInstant(instant) {
  if (instant === null || instant === undefined) return words.never;
  return new Intl.DateTimeFormat(LANGUAGE, { dateStyle: "medium", timeStyle: "short" }).format(new Date(instant));
}

/** @param {number} milliseconds */
export function formatDuration(milliseconds) {
  if (milliseconds < 1_000) return `${formatCount(Math.round(milliseconds))} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 60) return `${formatTenths(seconds)} s`;
  return seconds < 3_600 ? `${formatCount(Math.round(seconds / 60))} min` : `${formatTenths(seconds / 3_600)} h`;
}

/** @param {number} amount */
function formatTenths(amount) {
  return new Intl.NumberFormat(LANGUAGE, { minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(amount);
}

/** The time of day in the viewer's zone, with milliseconds. @param {string} instant */
export function formatClock(instant) {
  const at = new Date(instant);
  const part = (/** @type {number} */ value, length = 2) => String(value).padStart(length, "0");
  return `${part(at.getHours())}:${part(at.getMinutes())}:${part(at.getSeconds())}.${part(at.getMilliseconds(), 3)}`;
}

/** @param {number} bytes */
export function formatMegabytes(bytes) {
  return new Intl.NumberFormat(LANGUAGE, { style: "unit", unit: "megabyte" }).format(bytes / 1_000_000);
}

export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
