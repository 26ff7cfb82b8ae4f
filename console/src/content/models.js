/** The models of a space, and how one is made. */

import { announce, askInDialog, field, h, number, showLoaded, table } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";

/** @import { SpaceView } from "./space-page.js" */

/** @param {HTMLElement} target @param {SpaceView} view */
export function showModels(target, view) {
  const list = h("div");
  if (view.may.has("manage")) {
    const create = h("button", { type: "button", class: "button primary", onclick: () => createModel(view) });
    create.append(words.content.models.create);
    target.append(h("div", { class: "content-tools" }, create));
  }
  target.append(list);
  return showLoaded(
    list,
    () => view.content.models.list({ signal: view.context.signal }),
    (models) => modelsTable(models, view),
  );
}

/** @param {any[]} models @param {SpaceView} view */
function modelsTable(models, view) {
  const { columns, kinds, builtIn, translated } = words.content.models;
  const rows = models.map((model) => [
    h(
      "div",
      {},
      h("a", { href: view.linkTo("models", model.id) }, model.title || model.id),
      h("div", { class: "quiet-text" }, model.description || model.id),
    ),
    h(
      "div",
      { class: "tags" },
      h("span", { class: "tag" }, kinds[model.kind] ?? model.kind),
      model.i18n && h("span", { class: "tag" }, translated),
      model.builtIn && h("span", { class: "tag" }, builtIn),
    ),
    formatCount(Object.keys(model.fields).length),
    formatCount(model.documents),
  ]);
  const heads = [columns.model, columns.kind, number(columns.fields), number(columns.documents)];
  return table(words.content.parts.models, heads, rows);
}

/** @param {SpaceView} view */
async function createModel({ content, linkTo }) {
  const { create, exists, id, idHint, kinds, saved, editor } = words.content.models;
  const name = h("input", { name: "id", required: true, autocomplete: "off", spellcheck: false, maxLength: 40 });
  const title = h("input", { name: "title", autocomplete: "off", maxLength: 200 });
  const kind = h(
    "select",
    { name: "kind" },
    ...Object.entries(kinds).map(([value, text]) => h("option", { value }, text)),
  );
  const i18n = h("label", { class: "check" }, h("input", { type: "checkbox", name: "i18n" }), editor.translated);
  const fields = [
    field(id, name, idHint),
    field(words.content.documents.title, title),
    field(editor.kind, kind, editor.kindHint),
    i18n,
  ];
  /** @type {any} */
  let made;
  await askInDialog(create, fields, {
    action: words.add,
    onAction: async (data) => {
      const text = (/** @type {string} */ of) => String(data.get(of) ?? "").trim();
      const wanted = text("id");
      if ((await content.models.list()).some((model) => model.id === wanted)) throw new Error(exists);
      const definition = { kind: text("kind"), title: text("title"), i18n: text("i18n") === "on", fields: {} };
      made = await content.models.put(wanted, definition);
    },
  });
  if (!made) return;
  announce(saved(made.id));
  location.hash = linkTo("models", made.id);
}
