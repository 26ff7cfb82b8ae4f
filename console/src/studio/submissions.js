/** What visitors have sent with forms: it is read, approved, rejected, called spam, or deleted. */

import { toText } from "../content/content-difference.js";
import { scrolled } from "../content/difference-view.js";
import { ListPages } from "../content/list-pages.js";
import { refreshRegularly } from "../content/refresh.js";
import { note } from "../content/space-rights.js";
import { announce, askInDialog, emptyView, field, h, showLoaded } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { nameInAddress, sortModels } from "./entry-list.js";

/** @import { SpaceView } from "../content/space-page.js" */
/** @typedef {"pending" | "approved" | "rejected" | "spam"} SubmissionStatus */

const STATUSES = /** @type {const} */ (["pending", "approved", "rejected", "spam"]);

/** @param {HTMLElement} target @param {SpaceView} view @param {string | undefined} model */
export function showSubmissions(target, view, model) {
  return showLoaded(
    target,
    () => view.content.models.list({ signal: view.context.signal }),
    (models) => {
      const own = listFormModels(models);
      const { noForms, noFormsText } = words.studio.submissions;
      const { noFormsHere } = words.studio.submissions;
      const mayMake = view.may.has("manage");
      const making = mayMake ? newFormView(view, models) : null;
      if (!own.length) return emptyView(noForms, mayMake ? noFormsText : noFormsHere, making);
      const chosen = own.find(({ id }) => id === model) ?? own[0];
      nameInAddress(view, "submissions", chosen.id, model);
      return submissionsView(view, own, chosen, making);
    },
  );
}

/**
 * Return the models that visitors may send entries of.
 *
 * @param {any[]} models
 */
export function listFormModels(models) {
  return sortModels(models).filter(({ form }) => form && typeof form === "object");
}

/** The choice of a collection that has no form yet. @param {SpaceView} view @param {any[]} models */
function newFormView(view, models) {
  const { create, createFor } = words.studio.forms;
  const free = sortModels(models).filter(({ kind, form, builtIn }) => kind === "collection" && !form && !builtIn);
  if (!free.length) return null;
  const choice = h("select", {}, ...free.map(({ id, title }) => h("option", { value: id }, title || id)));
  const open = () => {
    location.hash = view.linkTo("submissions", choice.value, "form");
  };
  const button = h("button", { type: "button", class: "button", onclick: open }, create);
  return h("div", { class: "content-tools" }, field(createFor, choice), button);
}

/** @param {SpaceView} view @param {any[]} models @param {any} model @param {HTMLElement | null} making */
function submissionsView(view, models, model, making) {
  const { form, states } = words.studio.submissions;
  const list = new SubmissionList(view, model);
  const choice = h("select", {}, ...models.map(({ id, title }) => h("option", { value: id }, title || id)));
  choice.value = model.id;
  choice.addEventListener("change", () => {
    location.hash = view.linkTo("submissions", choice.value);
  });
  const status = h("select", {}, ...STATUSES.map((name) => h("option", { value: name }, states[name])));
  status.addEventListener("change", () => list.filter(/** @type {SubmissionStatus} */ (status.value)));
  list.load();
  refreshRegularly(view.context, () => list.load({ isRefresh: true }));
  const address = view.linkTo("submissions", model.id, "form");
  const change = view.may.has("manage") && h("a", { class: "button", href: address }, words.studio.forms.change);
  const tools = [field(form, choice), field(words.content.status, status), change];
  const told = !view.may.has("review") && note(words.studio.submissions.forModerators);
  return [h("div", { class: "content-tools" }, ...tools), told, list.element, making];
}

class SubmissionList {
  /** @type {SubmissionStatus} */
  #status = "pending";
  #pages;

  /** @param {SpaceView} view @param {any} model */
  constructor(view, model) {
    this.view = view;
    this.model = model;
    this.element = h("div", { class: "submissions" });
    const { content, context } = view;
    this.#pages = new ListPages(
      (wanted) => content.submissions.list(model.id, { status: this.#status, ...wanted }, { signal: context.signal }),
      ({ submissions }) => submissions.length,
    );
  }

  /** @param {SubmissionStatus} status */
  filter(status) {
    this.#status = status;
    this.#pages.reset();
    this.load();
  }

  /** @param {{isRefresh?: boolean}} [options] */
  load(options) {
    return showLoaded(
      this.element,
      () => this.#pages.read(),
      (page) => this.#render(page),
      options,
    );
  }

  /** @param {{submissions: any[], total: number, nextCursor?: string}} page */
  #render(page) {
    const { submissions, total } = page;
    const { none, noneText, count } = words.studio.submissions;
    if (!submissions.length) return emptyView(none[this.#status], noneText);
    return [
      h("p", { class: "quiet-text", role: "status" }, count(total, formatCount(total))),
      h("ul", { class: "cards" }, ...submissions.map((submission) => this.#card(submission))),
      this.#pages.buttons(page, () => this.load(), total),
    ];
  }

  /** @param {any} submission */
  #card(submission) {
    const { id, createdAt, locale, entryId, data, fields } = submission;
    const { hiddenText, entry, sentAt } = words.studio.submissions;
    const link = h("a", { href: this.view.linkTo("documents", this.model.id, entryId ?? "") }, entry);
    const head = h("p", { class: "quiet-text" }, sentAt(formatInstant(createdAt)), locale ? ` · ${locale}` : "");
    const body = data ? valuesView(data) : h("p", { class: "quiet-text" }, hiddenText(fields.join(", ")));
    return h(
      "li",
      { class: "card", "aria-label": id },
      head,
      body,
      senderView(submission),
      h("div", { class: "row-actions" }, entryId && link, ...this.#actions(submission)),
    );
  }

  /** @param {any} submission */
  #actions({ id, status, data }) {
    if (!data) return []; // it is for moderators to decide
    const { decisions, decided } = words.studio.submissions;
    const decide = async (/** @type {SubmissionStatus} */ to) => {
      await this.view.content.submissions.decide(id, to);
      announce(decided[to]);
      await this.load();
    };
    const button = (/** @type {string} */ text, /** @type {() => Promise<unknown>} */ act) => {
      const onclick = () => act().catch((/** @type {any} */ error) => this.#tell(own, error));
      const own = h("button", { type: "button", class: "link", "aria-label": `${text} ${id}`, onclick }, text);
      return own;
    };
    const others = status === "approved" ? [] : STATUSES.filter((to) => to !== status);
    return [
      ...others.map((to) => button(decisions[to], () => decide(to))),
      button(words.remove, () => this.#remove(id)),
    ];
  }

  /** Say beside a submission why it could not be decided. @param {HTMLElement} button @param {any} error */
  #tell(button, error) {
    const problems = (error.details?.problems ?? []).map((/** @type {any} */ one) => `${one.field}: ${one.message}`);
    const text = [error.message, ...problems].join(" ");
    const card = button.closest("li");
    card?.querySelector(".problem")?.remove();
    card?.append(h("p", { class: "problem", role: "alert" }, text));
  }

  /** @param {string} id */
  async #remove(id) {
    const { removeTitle, removeText, removed } = words.studio.submissions;
    const done = await askInDialog(removeTitle, [h("p", {}, removeText)], {
      action: words.remove,
      isDangerous: true,
      onAction: () => this.view.content.submissions.remove(id),
    });
    if (!done) return;
    announce(removed);
    await this.load();
  }
}

/** @param {Record<string, any>} data */
function valuesView(data) {
  const rows = Object.entries(data).flatMap(([name, value]) => [
    h("dt", {}, h("bdi", {}, name)),
    h("dd", { dir: "auto", class: "cell-text", ...scrolled(toText(value)) }, toText(value)),
  ]);
  return h("dl", { class: "values" }, ...rows);
}

/** @param {any} submission */
function senderView({ sender }) {
  const parts = [sender?.address, sender?.referrer, sender?.agent].filter(Boolean);
  return parts.length > 0 && h("p", { class: "quiet-text sender", dir: "auto" }, parts.join(" · "));
}
