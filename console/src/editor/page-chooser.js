/** Choose, add and delete pages of the site in the editor. */

import { askInDialog, field, h, iconButton } from "../dom.js";
import { words } from "../words/index.js";

const EVENTS = "page:add page:remove page:update page:select project:load";

/**
 * @param {any} editor
 * @returns {HTMLElement}
 */
export function pageChooser(editor) {
  const select = h("select", { "aria-label": words.pages.page });
  const remove = iconButton("close", words.pages.deletePage, () => deletePage(editor));
  const fill = () => {
    const pages = editor.Pages.getAll();
    const options = pages.map((/** @type {any} */ page) => h("option", { value: page.getId() }, nameOf(page)));
    select.replaceChildren(...options);
    select.value = editor.Pages.getSelected()?.getId() ?? "";
    select.hidden = remove.hidden = pages.length < 2;
  };
  select.addEventListener("change", () => editor.Pages.select(select.value));
  // a change of pages consists of several
  editor.on(EVENTS, () => queueMicrotask(fill));
  fill();
  const add = iconButton("plus", words.pages.addPage, () => addPage(editor));
  return h("div", { class: "group page-group", role: "group", "aria-label": words.pages.pages }, select, remove, add);
}

/** @param {any} page */
function nameOf(page) {
  return page.getName() || page.get("slug") || page.getId();
}

/** @param {any} editor */
async function addPage(editor) {
  const input = h("input", { name: "name", required: true, maxLength: 100 });
  await askInDialog(words.pages.addPage, [field(words.sites.name, input)], {
    action: words.add,
    onAction: () => {
      const name = input.value.trim();
      if (!name) throw new Error(words.pages.needsName);
      editor.Pages.add({ name }, { select: true });
    },
  });
}

/** @param {any} editor */
async function deletePage(editor) {
  const page = editor.Pages.getSelected();
  await askInDialog(words.sites.deleteTitle(nameOf(page)), [h("p", {}, words.pages.deleteText)], {
    action: words.remove,
    isDangerous: true,
    onAction: () => {
      const other = editor.Pages.getAll().find((/** @type {any} */ one) => one !== page);
      if (!other) return;
      editor.Pages.select(other);
      editor.Pages.remove(page);
    },
  });
}
