/** Numbers as people read them. */

/** @param {number} count @param {string} language */
export function formatCount(count, language) {
  return new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 }).format(count);
}

/**
 * An amount in dollars; small ones with the digits that say something.
 *
 * @param {number} amount
 * @param {string} language
 */
export function formatCost(amount, language) {
  const digits = amount === 0 || amount >= 1 ? 2 : Math.min(6, Math.max(2, 1 - Math.floor(Math.log10(amount))));
  return new Intl.NumberFormat(language, {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(amount);
}

/** @param {number} bytes @param {string} language */
export function formatBytes(bytes, language) {
  const unit = bytes < 1_000_000 ? "kilobyte" : "megabyte";
  const amount = bytes / (bytes < 1_000_000 ? 1_000 : 1_000_000);
  return new Intl.NumberFormat(language, { style: "unit", unit, maximumFractionDigits: 1 }).format(amount);
}

/**
 * A moment: its time if it is today, otherwise with its date.
 *
 * @param {string | Date} when
 * @param {string} language
 * @param {Date} [now]
 */
export function formatTime(when, language, now = new Date()) {
  const date = new Date(when);
  if (Number.isNaN(date.getTime())) return "…";
  const isToday = date.toDateString() === now.toDateString();
  const style = isToday ? {} : /** @type {const} */ ({ dateStyle: "medium" });
  return new Intl.DateTimeFormat(language, { ...style, timeStyle: "short" }).format(date);
}

/**
 * The day of a conversation: a time today, otherwise a date, with the year where it is another one.
 *
 * @param {string} when
 * @param {string} language
 * @param {Date} [now]
 */
export function formatDay(when, language, now = new Date()) {
  const date = new Date(when);
  if (Number.isNaN(date.getTime())) return "";
  if (date.toDateString() === now.toDateString()) return formatTime(date, language, now);
  const year = date.getFullYear() === now.getFullYear() ? {} : /** @type {const} */ ({ year: "numeric" });
  return new Intl.DateTimeFormat(language, { day: "numeric", month: "short", ...year }).format(date);
}
