/** Days of the viewer's zone, and the usage as a table for other programs. */

/**
 * @param {number} days How many, the last of which is today.
 * @param {Date} [now]
 * @returns {Date} When the first of them began, in the viewer's zone.
 */
export function startOfPeriod(days, now = new Date()) {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - days + 1);
}

/**
 * @param {number} count
 * @param {Date} [now]
 * @returns {string[]} The ISO days of a period, the last of which is today.
 */
export function listDays(count, now = new Date()) {
  return Array.from({ length: count }, (_, index) => toIsoDay(startOfPeriod(count - index, now)));
}

/** @param {Date} date */
function toIsoDay(date) {
  const part = (/** @type {number} */ value) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${part(date.getMonth() + 1)}-${part(date.getDate())}`;
}

const NUMBERS = ["promptTokens", "completionTokens", "cacheReadTokens", "cacheCreationTokens", "chatCount", "costUsd"];

/**
 * Write an audit as CSV (RFC 4180): one table, whose first column says what a row is about.
 *
 * @param {any} audit
 */
export function usageToCsv(audit) {
  const named = [
    ["total", "", audit.totals],
    ...audit.byDay.map((/** @type {any} */ row) => ["day", row.day, row]),
    ...audit.byUser.map((/** @type {any} */ row) => ["user", row.userLabel, row]),
    ...audit.byScope.map((/** @type {any} */ row) => ["scope", row.scope, row]),
    ...audit.byModel.map((/** @type {any} */ row) => ["model", `${row.providerId}/${row.modelId}`, row]),
  ];
  const rows = named.map(([group, name, row]) => [group, name, ...NUMBERS.map((member) => row[member])]);
  return [["group", "name", ...NUMBERS], ...rows].map((row) => `${row.map(toCell).join(",")}\r\n`).join("");
}

/** What a spreadsheet takes for the start of a formula, also behind what it may take for the end of a cell. */
const FORMULA = /(^|[;,\t\r\n|]\s*"?)([=+\-@＝＋－＠\t\r])/g;

/** @param {string | number} value Text that a spreadsheet would take for a formula is marked as text. */
function toCell(value) {
  if (typeof value === "number") return String(value);
  const text = value.replace(FORMULA, "$1'$2");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
