import { h } from "../dom.js";

/** @param {HTMLElement} target */
export function show(target) {
  target.append(h("h1", {}, "Turns"));
}
