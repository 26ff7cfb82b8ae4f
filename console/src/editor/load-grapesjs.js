/** Load GrapesJS when an editor is opened: it is a megabyte, and the workspace needs none of it. */

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
    element.onerror = () => reject(new Error("The editor could not be loaded. Check the connection, and try again."));
    add();
  });
}
