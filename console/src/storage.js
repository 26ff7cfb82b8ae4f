/** Remember small things in this browser. One that lets the page store nothing forgets them with the page. */

/** @type {Map<string, string>} */
const forgotten = new Map();

/** @param {string} key @returns {string} What was remembered; empty for nothing. */
export function recall(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return forgotten.get(key) ?? "";
  }
}

/** @param {string} prefix @returns {string[]} The keys of what is remembered that begin so. */
export function recallKeys(prefix) {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  } catch {
    return []; // it is forgotten with the page, and nobody comes back for it
  }
}

/** @param {string} key @param {string} value An empty one is forgotten. */
export function remember(key, value) {
  try {
    if (value) localStorage.setItem(key, value);
    else localStorage.removeItem(key);
  } catch {
    forgotten.set(key, value);
  }
}
