/** Say in a few words what a field may hold. */

const MAX_OPTIONS = 8;
const MAX_CHARACTERS = 80;

/**
 * @param {any} definition
 * @returns {string[]} Such as `→ author`, `1–5`, `≤ 80`, `draft | final`.
 */
export function listLimits({ model, options, min, max, pattern, items, default: standard }) {
  const targets = typeof model === "string" ? [model] : (model ?? []);
  const [from, to] = [min ?? undefined, max ?? undefined];
  const limits = [
    targets.length > 0 && `→ ${targets.join(", ")}`,
    options?.length > 0 && joinOptions(options),
    sayBounds(from, to),
    pattern && `/${pattern}/`,
    items && `[${typeof items === "string" ? items : items.type}]`,
    standard !== undefined && standard !== null && `= ${JSON.stringify(standard)}`,
  ];
  return limits.filter((text) => typeof text === "string" && text !== "").map(cut);
}

/** @param {number | undefined} from @param {number | undefined} to */
function sayBounds(from, to) {
  if (from === undefined) return to === undefined ? "" : `≤ ${to}`;
  return to === undefined ? `≥ ${from}` : `${from}–${to}`;
}

/** @param {string} text */
function cut(text) {
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
}

/** @param {string[]} options */
function joinOptions(options) {
  const more = options.length > MAX_OPTIONS ? " | …" : "";
  return options.slice(0, MAX_OPTIONS).join(" | ") + more;
}
