/** Export a site: the open page as one file, or all pages into a folder. */

import { announce, h, iconButton, problemView, saveFile } from "../dom.js";
import { words } from "../words/index.js";
import { fileNameOf, toHtmlFile, writeToFolder } from "./page-files.js";

/** @param {any} editor @param {{name: string}} site */
export async function exportSite(editor, site) {
  const dialog = h("dialog", { "aria-label": words.exports.title });
  const problem = h("div");
  const act = (/** @type {() => any} */ action, /** @type {string} */ text) => async () => {
    try {
      await action();
      dialog.close();
      announce(text);
    } catch (error) {
      if (!(error instanceof DOMException && error.name === "AbortError")) problem.replaceChildren(problemView(error));
    }
  };
  const page = editor.Pages.getSelected();
  const saveOne = () =>
    saveFile(`${fileNameOf(page.getName() || site.name)}.html`, "text/html", pageToFile(editor, page, site));
  const buttons = [
    h(
      "button",
      { type: "button", class: "button primary", onclick: act(saveOne, words.exports.pageSaved) },
      words.exports.onePage,
    ),
  ];
  if ("showDirectoryPicker" in window) {
    const saveAll = () => writeToFolder(filesOf(editor, site));
    buttons.push(
      h(
        "button",
        { type: "button", class: "button", onclick: act(saveAll, words.exports.siteSaved) },
        words.exports.allPages,
      ),
    );
  }
  const close = iconButton("close", words.close, () => dialog.close());
  dialog.append(
    h("div", { class: "section-head" }, h("h2", {}, words.exports.title), close),
    h("p", { class: "lead" }, words.exports.lead),
    h("div", { class: "dialog-choices" }, ...buttons),
    problem,
  );
  document.body.append(dialog);
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve));
  dialog.remove();
}

/** @param {any} editor @param {{name: string}} site */
export function filesOf(editor, site) {
  const names = new Set();
  return editor.Pages.getAll().map((/** @type {any} */ page) => {
    const wanted = fileNameOf(page.get("slug") || page.getName() || "page");
    let name = wanted;
    for (let count = 2; names.has(name); count += 1) name = `${wanted}-${count}`;
    names.add(name);
    return { name: `${name}.html`, content: pageToFile(editor, page, site) };
  });
}

/** @param {any} editor @param {any} page @param {{name: string}} site */
function pageToFile(editor, page, site) {
  const component = page.getMainComponent();
  const body = component.toHTML({ asDocument: false });
  const head = component.head
    ?.components()
    .map((/** @type {any} */ one) => one.toHTML())
    .join("\n");
  const attributes = component.docEl?.getAttributes();
  const css = editor.getCss({ component, avoidProtected: true, keepUnusedStyles: true });
  return toHtmlFile({ title: page.getName() || site.name, head, body, attributes, css });
}
