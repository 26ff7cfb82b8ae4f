/** The form of a model: which fields visitors fill in, what limits them, and what they see. */

import { readOwnDefinition } from "../content/own-definition.js";
import { closedPartView } from "../content/space-rights.js";
import { announce, askInDialog, field, h, lockWhile, problemView, showLoaded } from "../dom.js";
import { words } from "../words/index.js";
import { formFields } from "./form-fields.js";
import { formPlace } from "./form-place.js";
import { formPreview } from "./form-preview.js";
import { BOUNDS, findFormProblems, MAX_MESSAGE, readFormState, toFormDefinition } from "./form-rules.js";
import { siteCaptcha } from "./site-captcha.js";

/** @import { SpaceView } from "../content/space-page.js" */
/** @import { FormProblem, FormState } from "./form-rules.js" */
/** @import { SiteCaptcha } from "./form-snippet.js" */

/** @param {HTMLElement} target @param {SpaceView} view @param {string} id */
export function showFormEditor(target, view, id) {
  const body = h("div");
  target.append(h("a", { class: "back", href: view.linkTo("submissions", id) }, words.studio.forms.back), body);
  if (!view.may.has("manage")) {
    body.append(closedPartView("manage"));
    return;
  }
  const load = () =>
    showLoaded(
      body,
      () => view.content.models.get(id, { signal: view.context.signal }),
      (model) => new FormEditor(model, view, load).view(),
    );
  return load();
}

class FormEditor {
  #problem = h("div", { class: "form-problem-place" });
  #preview = h("div");
  #place = h("div");
  /** The control that each problem is about. @type {Partial<Record<FormProblem, HTMLElement>>} */
  #controls = {};

  /** @param {any} model @param {SpaceView} space @param {() => Promise<void>} reload */
  constructor(model, space, reload) {
    this.model = model;
    this.space = space;
    this.reload = reload;
    /** @type {FormState} */
    this.state = readFormState(model);
  }

  view() {
    const { title, remove, save, notify, notifyLink } = words.studio.forms;
    const removal = h("button", { type: "button", class: "button", onclick: () => this.#remove() }, remove);
    const form = h(
      "form",
      { class: "fields", noValidate: true },
      this.#states(),
      formFields(this.state, (list) => this.#change("fields", list)),
      this.#words(),
      this.#limits(),
      h("p", { class: "quiet-text" }, `${notify} `, h("a", { href: "#/webhooks" }, notifyLink)),
      this.#problem,
      h("div", { class: "form-end" }, h("button", { type: "submit", class: "button primary" }, save)),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save(form);
    });
    this.#show();
    this.#showPlace(null);
    const name = this.model.title || this.model.id;
    return [
      h(
        "header",
        { class: "page-head" },
        h("h2", { class: "document-title" }, title(name)),
        this.model.form && removal,
      ),
      h("div", { class: "form-editor" }, form, this.#preview),
      this.#place,
    ];
  }

  /** @param {FormProblem} about @param {HTMLElement} control */
  #change(about, control) {
    this.#controls[about] = control;
    this.#show();
  }

  #show() {
    this.#preview.replaceChildren(formPreview(this.state, this.model));
  }

  /** @param {SiteCaptcha | null} captcha */
  #showPlace(captcha) {
    this.#place.replaceChildren(formPlace(this.model, this.space, captcha));
  }

  #states() {
    const { states, enabled, isPublic } = words.studio.forms;
    return h("fieldset", {}, h("legend", {}, states), this.#check("enabled", enabled), this.#check("public", isPublic));
  }

  /** @param {"enabled" | "public" | "captcha" | "autoApprove"} name @param {string} label @param {string} [hint] */
  #check(name, label, hint) {
    const box = h("input", { type: "checkbox", checked: this.state[name] });
    box.addEventListener("change", () => {
      this.state[name] = box.checked;
      this.#show();
    });
    return h("div", {}, h("label", { class: "check" }, box, label), hint && h("small", { class: "quiet-text" }, hint));
  }

  #words() {
    const { message, messageHint, honeypot, honeypotHint } = words.studio.forms;
    const text = h("textarea", { rows: 2, value: this.state.successMessage, maxLength: MAX_MESSAGE });
    this.#follow(text, "successMessage");
    return [field(message, text, messageHint), field(honeypot, this.#input("honeypot"), honeypotHint)];
  }

  #limits() {
    const { limits, perMinute, perMonth, keepDays, keepDaysHint, captcha, captchaHint } = words.studio.forms;
    const { autoApprove, autoApproveHint } = words.studio.forms;
    return h(
      "fieldset",
      {},
      h("legend", {}, limits),
      field(perMinute, this.#input("perMinute")),
      field(perMonth, this.#input("perMonth")),
      field(keepDays, this.#input("keepDays"), keepDaysHint),
      this.#check("captcha", captcha, captchaHint),
      siteCaptcha(this.space, (own) => this.#showPlace(own)),
      this.#check("autoApprove", autoApprove, autoApproveHint),
    );
  }

  /** @param {"honeypot" | "perMinute" | "perMonth" | "keepDays"} name */
  #input(name) {
    const isNumber = name !== "honeypot";
    const input = h("input", { value: this.state[name], autocomplete: "off", spellcheck: false });
    if (isNumber) input.inputMode = "numeric";
    this.#follow(input, name);
    return input;
  }

  /** @param {HTMLInputElement | HTMLTextAreaElement} control @param {"honeypot" | "perMinute" | "perMonth" | "keepDays" | "successMessage"} name */
  #follow(control, name) {
    this.#controls[name] = control;
    control.addEventListener("input", () => {
      this.state[name] = control.value.trim();
      control.removeAttribute("aria-invalid");
      this.#show();
    });
  }

  /** @param {HTMLFormElement} form */
  async #save(form) {
    const wrong = findFormProblems(this.state);
    for (const [name, control] of Object.entries(this.#controls)) {
      if (wrong.includes(/** @type {FormProblem} */ (name))) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
    if (wrong.length) {
      this.#tell(wrong);
      return;
    }
    try {
      await lockWhile(form, () => this.#store(toFormDefinition(this.state, this.model), words.studio.forms.saved));
    } catch (error) {
      this.#problem.replaceChildren(problemView(error));
    }
  }

  /** Say what is wrong, and lead to the first of it. @param {FormProblem[]} wrong */
  #tell(wrong) {
    const { problems } = words.studio.forms;
    const bounds = /** @type {Record<string, number[]>} */ (BOUNDS);
    const texts = wrong.map((name) => h("li", {}, problems[name](...(bounds[name] ?? []).map(String))));
    this.#problem.replaceChildren(h("div", { class: "problem", role: "alert" }, h("ul", {}, ...texts)));
    this.#controls[wrong[0]]?.focus();
  }

  /** @param {any} definition @param {string} said */
  async #store(definition, said) {
    const { model, space } = this;
    const own = { ...readOwnDefinition(model), form: definition };
    await space.content.models.put(model.id, own, { ifVersion: model.version });
    announce(said);
    await this.reload();
  }

  async #remove() {
    const { removeTitle, removeText, remove, removed } = words.studio.forms;
    await askInDialog(removeTitle, [h("p", {}, removeText)], {
      action: remove,
      isDangerous: true,
      onAction: () => this.#store(null, removed),
    });
  }
}
