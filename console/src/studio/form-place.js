/** Where a form is on the site: its address, and the HTML of a page that has it. */

import { copyButton } from "../content/copy-button.js";
import { field, h } from "../dom.js";
import { words } from "../words/index.js";
import { readFormState } from "./form-rules.js";
import { makeFormSnippet } from "./form-snippet.js";

/** @import { SpaceView } from "../content/space-page.js" */
/** @import { SiteCaptcha } from "./form-snippet.js" */

/**
 * Make the part of the form editor that says how visitors reach the form, as it is stored.
 *
 * @param {any} model
 * @param {SpaceView} view
 * @param {SiteCaptcha | null} captcha
 */
export function formPlace(model, view, captcha) {
  const { title, closed } = words.studio.forms.place;
  const state = readFormState(model);
  const isOpen = Boolean(model.formPath) && state.enabled && state.public;
  const parts = isOpen ? openPlace(model, view, captcha) : [h("p", { class: "quiet-text" }, closed)];
  return h("section", { class: "form-place", "aria-label": title }, h("h3", {}, title), ...parts);
}

/** @param {any} model @param {SpaceView} view @param {SiteCaptcha | null} captcha */
function openPlace(model, view, captcha) {
  const { address: label, addressHint, language, html, htmlHint, copy, unsaved, ...texts } = words.studio.forms.place;
  const address = new URL(model.formPath, location.origin).href;
  const state = readFormState(model);
  const own = h("input", { value: address, readOnly: true, class: "code", spellcheck: false });
  const snippet = h("textarea", { rows: 12, readOnly: true, class: "code", spellcheck: false, wrap: "off" });
  const choice = h("select", {}, ...view.locales.map((locale) => h("option", { value: locale }, locale)));
  const show = () => {
    const locale = view.locales.length > 1 ? choice.value : undefined;
    snippet.value = makeFormSnippet({ address, locale, state, fields: model.fields, captcha, texts });
  };
  choice.addEventListener("change", show);
  show();
  const row = (/** @type {HTMLElement} */ control, /** @type {HTMLElement} */ button) =>
    h("div", { class: "new-text" }, control, button);
  return [
    row(
      field(label, own, addressHint),
      copyButton(copy, label, async () => address),
    ),
    view.locales.length > 1 && h("div", { class: "content-tools" }, field(language, choice)),
    row(
      field(html, snippet, `${htmlHint} ${unsaved}`),
      copyButton(copy, html, async () => snippet.value),
    ),
  ].filter(Boolean);
}
