/** Make elements. */

/**
 * Make an element: `h("button", { type: "button", onclick }, "Send")`. Members that begin with `on` are listeners, those with
 * a dash, `role` and `for` are attributes, `class` is the class, and all others are properties. Children that are null or false
 * are left out.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any>} [members]
 * @param {...any} children Nodes and texts, and lists of them.
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(name, members = {}, ...children) {
  const element = /** @type {any} */ (document.createElement(name));
  for (const [key, value] of Object.entries(members)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key.includes("-") || key === "role" || key === "for") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const SHAPES = {
  plus: "M12 5v14M5 12h14",
  history: "M4 12a8 8 0 1 0 2.6-5.9M4 4v4h4M12 8v4.5l3 1.8",
  close: "M6 6l12 12M18 6L6 18",
  back: "M15 6l-6 6 6 6",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  attach: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7L9.3 17a1.6 1.6 0 0 1-2.3-2.3L14.5 7",
  chevron: "M8 10l4 4 4-4",
  check: "M5 12.5l4.5 4.5L19 7.5",
  undo: "M9 7L4 12l5 5M4 12h10a6 6 0 0 1 0 12",
  trash: "M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12",
  pen: "M5 19l1-4L16 5l3 3L9 18z",
  spark: "M12 4l1.8 6.2L20 12l-6.2 1.8L12 20l-1.8-6.2L4 12l6.2-1.8z",
  hand: "M7 4h10M7 20h10M8 4v3c0 2.5 4 3.5 4 5s-4 2.5-4 5v3M16 4v3c0 2.5-4 3.5-4 5s4 2.5 4 5v3",
  warn: "M12 8v5M12 16.5v.5M12 3l9.5 17h-19z",
};

/**
 * An icon beside words or on a labelled button; screen readers skip it.
 *
 * @param {keyof typeof SHAPES} name
 */
export function icon(name) {
  const drawn = drawIcon(SHAPES[name]);
  drawn.classList.toggle("solid", name === "stop");
  return drawn;
}

/**
 * An icon of a path in a square of 24.
 *
 * @param {string} shape
 */
export function drawIcon(shape) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", shape);
  svg.append(path);
  return svg;
}

/**
 * A button that is an icon.
 *
 * @param {keyof typeof SHAPES} shape
 * @param {string} label
 * @param {() => void} onclick
 * @param {Record<string, any>} [members]
 */
export function iconButton(shape, label, onclick, members = {}) {
  return h(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...members },
    icon(shape),
  );
}

/**
 * Show an image that is in memory. Its address is given back once the image is there.
 *
 * @param {HTMLImageElement} image
 * @param {Blob} blob
 * @returns {Promise<void>} It rejects where the blob is no image.
 */
export async function showBlob(image, blob) {
  const url = URL.createObjectURL(blob);
  try {
    await new Promise((done, fail) => {
      image.onload = done;
      image.onerror = fail;
      image.src = url;
    });
  } finally {
    URL.revokeObjectURL(url);
  }
}

/**
 * Whether a key belongs to an input method, which chooses a word with it. Safari tells it by the key code only.
 *
 * @param {KeyboardEvent} event
 */
export function isInputMethod(event) {
  return event.isComposing || event.keyCode === 229;
}

/**
 * Change what an element contains, and keep the focus in it: on the button that has the same words, or else elsewhere.
 *
 * @param {HTMLElement} element
 * @param {() => void} change
 * @param {HTMLElement} elsewhere
 */
export function keepFocus(element, change, elsewhere) {
  const focused = /** @type {ShadowRoot | Document} */ (element.getRootNode()).activeElement;
  const isInside = focused !== null && element.contains(focused);
  change();
  if (!isInside || element.contains(focused)) return;
  const same = [...element.querySelectorAll("button")].find(
    (button) => !button.disabled && button.textContent === focused.textContent,
  );
  (same ?? elsewhere).focus({ preventScroll: true });
}

/**
 * Set text only where it differs, so that screen readers and selections are left alone.
 *
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
