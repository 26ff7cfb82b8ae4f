/** A model: what it is called, its fields, and its whole definition as JSON. Both sides of it say the same. */

import { announce, askInDialog, field, h, lockWhile, problemView, showLoaded } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";
import { sayBreakingChanges } from "./breaking-changes.js";
import { makeModelFields } from "./model-fields.js";
import { readOwnDefinition } from "./own-definition.js";
import { makeReadOnly } from "./read-only-form.js";

/** @import { SpaceView } from "./space-page.js" */

/** @param {HTMLElement} target @param {SpaceView} view @param {string} id */
export function showModel(target, view, id) {
  const body = h("div");
  target.append(h("a", { class: "back", href: view.linkTo("models") }, words.content.models.back), body);
  const load = () =>
    showLoaded(
      body,
      () => view.content.models.get(id, { signal: view.context.signal }),
      (model) => new ModelPage(model, view, load).view(),
    );
  return load();
}

class ModelPage {
  #problem = h("div", { class: "form-problem-place" });
  #text = h("textarea", { rows: 16, class: "code", spellcheck: false });

  /** @param {any} model @param {SpaceView} space @param {() => Promise<void>} reload */
  constructor(model, space, reload) {
    const { editor } = words.content.models;
    this.model = model;
    this.space = space;
    this.reload = reload;
    this.definition = readOwnDefinition(model);
    this.title = h("input", { value: model.title, maxLength: 200, autocomplete: "off" });
    this.description = h("textarea", { rows: 2, value: model.description, maxLength: 2_000 });
    this.i18n = h("input", { type: "checkbox", checked: model.i18n, disabled: model.documents > 0 });
    this.fields = makeModelFields(model.id, this.definition.fields ?? {}, (fields) => this.#set({ fields }));
    this.title.addEventListener("input", () => this.#set({ title: this.title.value.trim() || undefined }));
    this.description.addEventListener("input", () =>
      this.#set({ description: this.description.value.trim() || undefined }),
    );
    this.i18n.addEventListener("change", () => this.#set({ i18n: this.i18n.checked || undefined }));
    this.#text.addEventListener("input", () => this.#follow());
    this.save = h("button", { type: "submit", class: "button primary" }, words.content.models.save);
    this.translated = h(
      "label",
      { class: "check" },
      this.i18n,
      model.documents ? editor.translatedStays : editor.translated,
    );
    this.#set({});
  }

  view() {
    const { definition, definitionHint, kinds, remove, editor } = words.content.models;
    const { model } = this;
    const title = h("h2", { class: "document-title" }, h("bdi", {}, model.title || model.id));
    const kind = h("span", { class: "tag" }, kinds[model.kind] ?? model.kind);
    const removal = h(
      "button",
      { type: "button", class: "button", onclick: () => removeModel(model, this.space) },
      remove,
    );
    const json = h(
      "details",
      { class: "fold", "data-key": "json" },
      h("summary", {}, editor.json),
      field(definition, this.#text, definitionHint),
    );
    const form = h(
      "form",
      { class: "fields", noValidate: true },
      field(words.content.documents.title, this.title),
      field(editor.description, this.description, editor.modelDescriptionHint),
      this.translated,
      model.kind !== "dictionary" &&
        h("section", { "aria-label": editor.heading }, h("h3", {}, editor.heading), this.fields.element),
      json,
      this.#problem,
      h("div", { class: "form-end" }, this.save),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save(form);
    });
    const head = h("div", { class: "tags" }, title, kind);
    const mayChange = this.space.may.has("manage");
    if (!mayChange) makeReadOnly(form);
    return [h("header", { class: "page-head" }, head, mayChange && !model.builtIn && removal), form];
  }

  /** Change members of the definition. @param {Record<string, any>} members */
  #set(members) {
    const changed = Object.entries({ ...this.definition, ...members }).filter(([, value]) => value !== undefined);
    this.definition = Object.fromEntries(changed);
    this.#text.value = JSON.stringify(this.definition, null, 2);
  }

  /** Show what the JSON says, once it can be read. */
  #follow() {
    const read = parseDefinition(this.#text.value);
    if (!read) return;
    this.definition = read;
    this.title.value = textOf(read.title);
    this.description.value = textOf(read.description);
    this.i18n.checked = read.i18n === true;
    this.fields.show(isObject(read.fields) ? read.fields : {});
  }

  /** @param {HTMLElement} form */
  async #save(form) {
    const { notJson } = words.content.models;
    if (!parseDefinition(this.#text.value)) {
      this.#problem.replaceChildren(problemView(new Error(notJson)));
      return;
    }
    try {
      await lockWhile(form, async () => {
        if (!(await this.#put())) return;
        announce(words.content.models.saved(this.model.id));
        await this.reload();
      });
    } catch (error) {
      this.#problem.replaceChildren(problemView(error));
    }
  }

  /** Store the definition. What breaks by it is stored only if somebody says so. @returns {Promise<boolean>} */
  async #put() {
    const { models } = this.space.content;
    const { id, version: ifVersion } = this.model;
    try {
      await models.put(id, this.definition, { ifVersion, breaking: "refuse" });
      return true;
    } catch (error) {
      const { code, details } = /** @type {any} */ (error);
      if (code !== "breakingChanges") throw error;
      return this.#askToBreak(details?.breakingChanges?.[id] ?? [], () =>
        models.put(id, this.definition, { ifVersion }),
      );
    }
  }

  /** @param {string[]} changes @param {() => Promise<any>} put */
  #askToBreak(changes, put) {
    const { title, text, save } = words.content.models.breaking;
    const { documents } = this.model;
    const items = sayBreakingChanges(changes).map((said) => h("li", {}, h("bdi", {}, said)));
    const content = [h("p", {}, text(documents, formatCount(documents))), h("ul", { class: "problems" }, ...items)];
    return askInDialog(title, content, { action: save, isDangerous: true, onAction: put });
  }
}

/** @param {string} text @returns {any} Nothing if it is no definition. */
function parseDefinition(text) {
  try {
    const read = JSON.parse(text);
    return isObject(read) ? read : undefined;
  } catch {
    return undefined;
  }
}

/** @param {any} value */
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** @param {any} value */
const textOf = (value) => (typeof value === "string" ? value : "");

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
