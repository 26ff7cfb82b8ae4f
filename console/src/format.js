/** Numbers and times as people read them, in the language of the page. */

const LANGUAGE = document.documentElement.lang || "en";

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
  if (instant === null || instant === undefined) return "never";
  return new Intl.DateTimeFormat(LANGUAGE, { dateStyle: "medium", timeStyle: "short" }).format(new Date(instant));
}

/** @param {number} milliseconds */
export function formatDuration(milliseconds) {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return seconds < 3_600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`;
}

export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
