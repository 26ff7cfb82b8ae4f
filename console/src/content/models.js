/** The models of a space, and the definition of one. */

import { announce, askInDialog, field, h, number, problemView, showLoaded, table } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";
import { listLimits } from "./field-limits.js";
import { readOwnDefinition } from "./own-definition.js";

/** @import { SpaceView } from "./space-page.js" */

const EXAMPLE = { kind: "collection", i18n: true, fields: { title: { type: "string", required: true } } };

/** @param {HTMLElement} target @param {SpaceView} view */
export function showModels(target, view) {
  const list = h("div");
  const create = h("button", { type: "button", class: "button primary", onclick: () => createModel(view) });
  create.append(words.content.models.create);
  target.append(h("div", { class: "content-tools" }, create), list);
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

/** @param {HTMLElement} target @param {SpaceView} view @param {string} id */
export function showModel(target, view, id) {
  const body = h("div");
  target.append(h("a", { class: "back", href: view.linkTo("models") }, words.content.models.back), body);
  const load = () =>
    showLoaded(
      body,
      () => view.content.models.get(id, { signal: view.context.signal }),
      (model) => modelView(model, view, load),
    );
  return load();
}

/** @param {any} model @param {SpaceView} view @param {() => void} reload */
function modelView(model, view, reload) {
  const { definition, definitionHint, save, remove } = words.content.models;
  const text = h("textarea", { rows: 16, class: "code", spellcheck: false, value: definitionOf(model) });
  const place = h("div");
  const store = async () => {
    try {
      await view.content.models.put(model.id, readDefinition(text.value), { ifVersion: model.version });
      announce(words.content.models.saved(model.id));
      reload();
    } catch (error) {
      place.replaceChildren(problemView(error));
    }
  };
  const title = h("h2", { class: "document-title" }, model.title || model.id);
  const deletion = h("button", { type: "button", class: "button", onclick: () => removeModel(model, view) }, remove);
  return [
    h("header", { class: "page-head" }, title, !model.builtIn && deletion),
    fieldsTable(model),
    h("section", {}, field(definition, text, definitionHint), place),
    h("div", { class: "form-end" }, h("button", { type: "button", class: "button primary", onclick: store }, save)),
  ];
}

/** @param {any} model */
function fieldsTable({ id, fields }) {
  const { fieldColumns, fieldsOf, rules } = words.content.models;
  const rows = Object.entries(fields).map(([name, definition]) => [
    h("strong", {}, name),
    definition.type,
    h(
      "div",
      { class: "tags" },
      ...Object.entries(rules).map(([rule, text]) => definition[rule] && h("span", { class: "tag" }, text)),
      ...listLimits(definition).map((text) => h("span", { class: "tag" }, h("bdi", {}, text))),
    ),
  ]);
  return rows.length > 0 && table(fieldsOf(id), [fieldColumns.name, fieldColumns.type, fieldColumns.rules], rows);
}

/** @param {any} model */
function definitionOf(model) {
  return JSON.stringify(readOwnDefinition(model), null, 2);
}

/** @param {string} text */
function readDefinition(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(words.content.models.notJson);
  }
}

/** @param {SpaceView} view */
async function createModel({ content, linkTo }) {
  const { create, exists, id, idHint, definition, definitionHint, saved } = words.content.models;
  const text = h("textarea", { name: "definition", rows: 10, class: "code", spellcheck: false });
  text.value = JSON.stringify(EXAMPLE, null, 2);
  const name = h("input", { name: "id", required: true, autocomplete: "off", spellcheck: false });
  /** @type {any} */
  let made;
  await askInDialog(create, [field(id, name, idHint), field(definition, text, definitionHint)], {
    action: words.add,
    onAction: async (data) => {
      const given = readDefinition(String(data.get("definition")));
      const wanted = String(data.get("id")).trim();
      if ((await content.models.list()).some((model) => model.id === wanted)) throw new Error(exists);
      made = await content.models.put(wanted, given);
    },
  });
  if (!made) return;
  announce(saved(made.id));
  location.hash = linkTo("models", made.id);
}

/** @param {any} model @param {SpaceView} view */
async function removeModel({ id, version }, { content, linkTo }) {
  const { removeTitle, removeText, removed } = words.content.models;
  const done = await askInDialog(removeTitle(id), [h("p", {}, removeText)], {
    action: words.remove,
    isDangerous: true,
    onAction: () => content.models.remove(id, { ifVersion: version }),
  });
  if (!done) return;
  announce(removed(id));
  location.hash = linkTo("models");
}
