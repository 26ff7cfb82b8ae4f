/** The focal point of an image: what is kept when it is cut to a shape. It is set by a click on the image, or with two sliders. */

import { h } from "../dom.js";
import { words } from "../words/index.js";

/** @typedef {{x: number, y: number}} FocalPoint From 0 to 1, across and down. */

const MIDDLE = 50;

/**
 * Make the control of an image's focal point.
 *
 * @param {HTMLElement} frame The image, whose edges are those of the frame.
 * @param {any} stored
 * @returns {{element: HTMLElement, read: () => FocalPoint | undefined}} `read` returns nothing where the middle is kept.
 */
export function makeFocalPoint(frame, stored) {
  const { title, hint, across, down, clear } = words.media.focalPoint;
  let point = parseFocalPoint(stored);
  const marker = h("span", { class: "focal-marker" });
  const slider = (/** @type {"x" | "y"} */ axis, /** @type {string} */ label) => {
    const input = h("input", { type: "range", min: 0, max: 100, step: 1, "aria-label": label });
    input.addEventListener("input", () => set({ x: 0.5, y: 0.5, ...point, [axis]: Number(input.value) / 100 }));
    return input;
  };
  const sliders = { x: slider("x", across), y: slider("y", down) };
  const button = h("button", { type: "button", class: "link", onclick: () => set(undefined) }, clear);
  const set = (/** @type {FocalPoint | undefined} */ wanted) => {
    point = wanted;
    marker.hidden = button.disabled = !point;
    for (const axis of /** @type {const} */ (["x", "y"])) {
      const percent = point ? 100 * point[axis] : MIDDLE;
      sliders[axis].value = String(Math.round(percent));
      sliders[axis].setAttribute("aria-valuetext", `${Math.round(percent)} %`);
      marker.style[axis === "x" ? "left" : "top"] = `${percent}%`;
    }
  };
  set(point);
  frame.classList.add("with-focal-point");
  frame.append(marker);
  frame.addEventListener("click", ({ clientX, clientY }) =>
    set(placeIn(frame.getBoundingClientRect(), clientX, clientY)),
  );
  const row = (/** @type {string} */ text, /** @type {HTMLElement} */ input) =>
    h("label", { class: "slider-row" }, h("span", {}, text), input);
  const rows = [row(across, sliders.x), row(down, sliders.y)];
  const legend = h("legend", {}, title);
  return {
    element: h(
      "fieldset",
      { class: "focal-point" },
      legend,
      ...rows,
      h("small", { class: "quiet-text" }, hint),
      button,
    ),
    read: () => point,
  };
}

/**
 * Return a point that an image says; nothing for what is none.
 *
 * @param {any} value
 * @returns {FocalPoint | undefined}
 */
export function parseFocalPoint(value) {
  const isPart = (/** @type {any} */ part) => typeof part === "number" && part >= 0 && part <= 1;
  return value && isPart(value.x) && isPart(value.y) ? { x: value.x, y: value.y } : undefined;
}

/**
 * Return where in a rectangle a place of the screen is, in hundredths.
 *
 * @param {{left: number, top: number, width: number, height: number}} box
 * @param {number} clientX
 * @param {number} clientY
 * @returns {FocalPoint}
 */
export function placeIn({ left, top, width, height }, clientX, clientY) {
  const part = (/** @type {number} */ place, /** @type {number} */ size) =>
    Math.round(100 * Math.min(1, Math.max(0, place / size))) / 100;
  return { x: part(clientX - left, width), y: part(clientY - top, height) };
}
