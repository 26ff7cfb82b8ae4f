/**
 * Round to two decimals, half up, of the exact binary value.
 * @param {number} value
 */
export function roundNumber(value) {
  const text = Math.abs(value).toFixed(20);
  const [whole, decimals] = text.split(".");
  const cents = BigInt(whole) * 100n + BigInt(decimals.slice(0, 2)) + (decimals[2] >= "5" ? 1n : 0n);
  return (Math.sign(value) * Number(cents)) / 100;
}

/**
 * Format with at most two decimals, without trailing zeros.
 * @param {number} value
 */
export function formatNumber(value) {
  return String(roundNumber(value) || 0);
}
