/** Make elements, and show what is loaded. */

import { drawIcon, h } from "@fermata/panel/dom";
import { formatCount } from "./format.js";
import { words } from "./words/index.js";

export { h };

const SHAPES = {
  editor: "M4 5h16v14H4zM4 9h16M9 9v10",
  content: "M6 3h9l4 4v14H6zM9 11h7M9 15h7M9 7h3",
  studio: "M4 5h7v6H4zM13 5h7v14h-7zM4 13h7v6H4z",
  usage: "M5 20V10M12 20V4M19 20v-7",
  turns: "M5 6h14M5 12h14M5 18h9",
  approvals: "M12 3l8 3v6c0 4.5-3.2 7.6-8 9-4.8-1.4-8-4.5-8-9V6zM8.5 12l2.5 2.5 4.5-5",
  policy: "M6 4h12v16H6zM9 9h6M9 13h6M9 17h3",
  tools:
    "M14.5 6.5a4 4 0 0 1 5-1l-2.6 2.6 2 2 2.6-2.6a4 4 0 0 1-5.4 4.7L9 19.300a2 2 0 0 1-3-3l7.200-7.100a4 4 0 0 1 1.300-2.700z",
  webhooks: "M4 12h5M15 12h5M9 12a3 3 0 1 0 6 0a3 3 0 1 0-6 0M17 9l3 3-3 3",
  providers: "M8 11a4 4 0 1 0 4 4v-1l8-8M17 9l2 2M14.5 11.5l1.5 1.5",
  models: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9",
  budgets: "M4 7h16v11H4zM4 11h16M8 15h3",
  theme: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  out: "M10 5H5v14h5M14 8l4 4-4 4M18 12H9",
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  undo: "M9 7L4 12l5 5M4 12h10a5 5 0 0 1 5 5v1",
  redo: "M15 7l5 5-5 5M20 12H10a5 5 0 0 0-5 5v1",
  desktop: "M4 5h16v11H4zM9 20h6M12 16v4",
  tablet: "M7 4h10v16H7zM11 17.5h2",
  phone: "M9 4h6v16H9zM11.5 17.5h1",
  agent: "M4 15a8 8 0 0 1 16 0M12 14v.5",
  blocks: "M5 5h6v6H5zM13 5h6v6h-6zM5 13h6v6H5zM13 13h6v6h-6z",
  chevron: "M8 10l4 4 4-4",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  close: "M6 6l12 12M18 6L6 18",
};

/**
 * An icon beside words or on a labelled button; screen readers skip it.
 *
 * @param {keyof typeof SHAPES} name
 */
export function icon(name) {
  return drawIcon(SHAPES[name]);
}

/**
 * @param {keyof typeof SHAPES} shape
 * @param {string} label
 * @param {() => void} onclick
 * @param {Record<string, any>} [members]
 */
export function iconButton(shape, label, onclick, members = {}) {
  const own = { type: "button", class: "icon-button", "aria-label": label, title: label, onclick };
  return h("button", { ...own, ...members }, icon(shape));
}

/** @type {WeakMap<HTMLElement, symbol>} Which load of an element is the newest. */
const loads = new WeakMap();

/**
 * Show what a request returns in an element: a quiet placeholder meanwhile, and on failure the words and a button. Of several at
 * the same time, the newest is shown. What a person has unfolded, scrolled or focused stays so.
 *
 * @template T
 * @param {HTMLElement} target
 * @param {() => Promise<T>} request
 * @param {(value: T) => any} render Returns what is shown.
 * @param {{isRefresh?: boolean}} [options] `isRefresh` keeps what is shown if the request fails: it was nobody's wish.
 */
export async function showLoaded(target, request, render, { isRefresh = false } = {}) {
  const load = Symbol("load");
  loads.set(target, load);
  target.setAttribute("aria-busy", "true");
  if (!target.childElementCount) target.replaceChildren(h("div", { class: "placeholder", "aria-hidden": "true" }));
  /** @type {any} */
  let content;
  try {
    content = render(await request());
  } catch (error) {
    if (isRefresh && /** @type {any} */ (error).status !== 401) content = null;
    else content = problemView(error, () => showLoaded(target, request, render));
  }
  if (loads.get(target) !== load) return;
  if (content) keepPlace(target, () => target.replaceChildren(...[content].flat(2).filter(Boolean)));
  target.removeAttribute("aria-busy");
}

/**
 * Change what an element contains, and keep what a person has unfolded, scrolled and focused in it.
 *
 * @param {HTMLElement} target
 * @param {() => void} change
 */
function keepPlace(target, change) {
  const unfolded = new Set(listByName(target, "details[open]").keys());
  const scrolled = [...listByName(target, ".table, pre")].map(
    ([name, { scrollLeft, scrollTop }]) => /** @type {const} */ ([name, scrollLeft, scrollTop]),
  );
  const [focused] = [...listByName(target, FOCUSABLE)].find(([, element]) => element === document.activeElement) ?? [];
  change();
  for (const [name, element] of listByName(target, "details"))
    if (unfolded.has(name)) /** @type {HTMLDetailsElement} */ (element).open = true;
  const scrollable = listByName(target, ".table, pre");
  for (const [name, left, top] of scrolled) scrollable.get(name)?.scrollTo(left, top);
  if (focused) listByName(target, FOCUSABLE).get(focused)?.focus({ preventScroll: true });
}

const FOCUSABLE = "a[href], button, summary, [tabindex]";

/**
 * @param {HTMLElement} target
 * @param {string} selector
 * @returns {Map<string, HTMLElement>} Elements by what they are called; of those called the same, by their order.
 */
function listByName(target, selector) {
  /** @type {Map<string, HTMLElement>} */
  const named = new Map();
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (target.querySelectorAll(selector))) {
    const own = element.dataset.key ?? element.getAttribute("href") ?? element.getAttribute("aria-label");
    const name =
      own ?? `${element.localName} ${element.localName === "details" ? "" : element.textContent?.slice(0, 80)}`;
    let unique = name;
    for (let count = 2; named.has(unique); count += 1) unique = `${name} ${count}`;
    named.set(unique, element);
  }
  return named;
}

/**
 * @param {any} error
 * @param {() => void} [onRetry] It is also done when the network is back, if the problem is still shown.
 */
export function problemView(error, onRetry) {
  if (error.status === 401) return signedOutProblem();
  const hint = error.hint && error.hint !== error.message ? h("p", { class: "quiet-text" }, error.hint) : null;
  const retry = onRetry && h("button", { type: "button", class: "button", onclick: onRetry }, words.tryAgain);
  const problem = h("div", { class: "problem", role: "alert" }, h("p", {}, error.message), hint, retry);
  if (onRetry) addEventListener("online", () => problem.isConnected && onRetry(), { once: true });
  return problem;
}

/** A session has ended meanwhile. Loading the page again shows how to sign in. */
function signedOutProblem() {
  const again = h("button", { type: "button", class: "button", onclick: () => location.reload() }, words.signIn);
  return h("div", { class: "problem", role: "alert" }, h("p", {}, words.signedOutHint), again);
}

/**
 * @param {string} title
 * @param {string} text
 * @param {any} [action]
 */
export function emptyView(title, text, action) {
  return h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, text), action);
}

/**
 * A field with its label.
 *
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint]
 */
export function field(label, control, hint) {
  return h("label", { class: "field" }, h("span", { class: "label" }, label), control, hint && h("small", {}, hint));
}

/** Rows that a table begins with: more are there for who asks. */
const FIRST_ROWS = 200;

/**
 * A table that scrolls by itself where it is too wide.
 *
 * @param {string} caption
 * @param {(string | {text: string, number: boolean})[]} columns
 * @param {any[][]} rows
 */
export function table(caption, columns, rows) {
  const isNumber = columns.map((column) => typeof column === "object" && column.number);
  const kind = (/** @type {number} */ index) => (isNumber[index] ? "number" : "");
  const head = columns.map((column, index) =>
    h("th", { scope: "col", class: kind(index) }, typeof column === "object" ? column.text : column),
  );
  const toRow = (/** @type {any[]} */ cells) =>
    h("tr", {}, ...cells.map((cell, index) => h("td", { class: kind(index) }, cell)));
  const body = h("tbody", {}, ...rows.slice(0, FIRST_ROWS).map(toRow));
  const whole = h("table", {}, h("caption", {}, h("span", {}, caption)), h("thead", {}, h("tr", {}, ...head)), body);
  const view = h("div", { class: "table", tabIndex: 0, role: "group", "aria-label": caption }, whole);
  if (rows.length > FIRST_ROWS) view.append(moreRowsButton(rows.slice(FIRST_ROWS), body, toRow));
  return view;
}

/** @param {any[][]} rows @param {HTMLElement} body @param {(cells: any[]) => HTMLElement} toRow */
function moreRowsButton(rows, body, toRow) {
  const label = words.showMore(formatCount(rows.length));
  const button = h("button", { type: "button", class: "button more" }, label);
  button.addEventListener("click", () => {
    body.append(...rows.map(toRow));
    button.remove();
  });
  return button;
}

/** @param {string} text */
export function number(text) {
  return { text, number: true };
}

/**
 * Send a form, and let nobody change it meanwhile: what the answer replaces would be lost. Its last part keeps the focus, which
 * has the buttons; the form is not sent a second time before it is answered.
 *
 * @param {HTMLElement} form
 * @param {() => Promise<unknown>} act Is over when the form shows what was stored.
 * @returns {Promise<boolean>} Whether it was done; not while the form is being sent already.
 */
export async function lockWhile(form, act) {
  if (form.hasAttribute("aria-busy")) return false;
  const parts = /** @type {HTMLElement[]} */ ([...form.children]).slice(0, -1);
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  form.setAttribute("aria-busy", "true");
  for (const part of parts) part.inert = true;
  try {
    await act();
    return true;
  } finally {
    for (const part of parts) part.inert = false;
    form.removeAttribute("aria-busy");
    if (document.activeElement === document.body && form.contains(focused)) focused?.focus({ preventScroll: true });
  }
}

/**
 * Ask in a dialog. Whoever closes it while the action is being done does not stop it: its end counts, and is told in a corner
 * if it has failed.
 *
 * @param {string} title
 * @param {any[]} content
 * @param {{action: string, isDangerous?: boolean, onAction: (data: FormData) => Promise<void> | void}} options
 * @returns {Promise<boolean>} Whether the action was done.
 */
export function askInDialog(title, content, { action, isDangerous = false, onAction }) {
  const problem = h("div", { class: "form-problem", role: "alert", hidden: true });
  const button = h("button", { type: "submit", class: isDangerous ? "button danger" : "button primary" }, action);
  const cancel = h("button", { type: "button", class: "button", onclick: () => dialog.close() }, words.cancel);
  const form = h("form", { method: "dialog" }, h("h2", {}, title), ...content, problem);
  form.append(h("div", { class: "dialog-actions" }, cancel, button));
  const dialog = h("dialog", { "aria-label": title }, form);
  const act = async () => {
    problem.hidden = true;
    try {
      await lockWhile(form, async () => onAction(new FormData(form)));
      dialog.close();
      return true;
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
      problem.hidden = false;
      if (!dialog.isConnected) announce(problem.textContent);
      return false;
    }
  };
  let isDone = Promise.resolve(false);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!form.hasAttribute("aria-busy")) isDone = act();
  });
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(isDone);
    });
  });
}

/**
 * Say in a corner what was done.
 *
 * @param {string} text
 */
export function announce(text) {
  const place = document.querySelector("#announcements");
  if (!place) return;
  const said = h("p", {}, text);
  place.replaceChildren(said);
  setTimeout(() => said.remove(), 4_000);
}

/**
 * Let the browser save a file.
 *
 * @param {string} name
 * @param {string} type
 * @param {string} content
 */
export function saveFile(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
