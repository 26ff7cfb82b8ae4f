/** Load GrapesJS when an editor is opened: it is a megabyte, and the workspace needs none of it. */

import { words } from "../words/index.js";

/** @type {Promise<any> | undefined} */
let loading;

/** @returns {Promise<any>} */
export function loadGrapesJs() {
  loading ??= Promise.all([addStyles(), addScript()]).then(() => /** @type {any} */ (window).grapesjs);
  loading.catch(() => {
    loading = undefined;
  });
  return loading;
}

/** @param {string} path */
function urlOf(path) {
  return new URL(`../../npm/grapesjs/${path}`, import.meta.url).href;
}

function addStyles() {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: urlOf("grapes.min.css") });
  // before the console's own sheets, which change its looks
  return loaded(link, () => document.head.prepend(link));
}

function addScript() {
  const script = Object.assign(document.createElement("script"), { src: urlOf("grapes.min.js") });
  return loaded(script, () => document.head.append(script));
}

/** @param {HTMLElement} element @param {() => void} add */
function loaded(element, add) {
  return new Promise((resolve, reject) => {
    element.onload = resolve;
    element.onerror = () => reject(new Error(words.editor.notLoaded));
    add();
  });
}

/**
 * Load the texts of GrapesJS in a language. It has the English ones itself; where others are missing, it shows these.
 *
 * @param {string} language
 * @returns {Promise<Record<string, any>>}
 */
export async function loadMessages(language) {
  if (language === "en") return {};
  const { default: messages } = await import(urlOf(`locale/${language}.mjs`));
  return { [language]: messages };
}
