/** Budgets: how much a day and a month may cost, and what is left of it. */

import { announce, field, h, iconButton, lockWhile, showLoaded } from "../dom.js";
import { formatCost, formatInstant } from "../format.js";
import { words } from "../words/index.js";

/** @import { PageContext } from "../shell/shell.js" */
/** @typedef {{dailyUsd?: number | null, monthlyUsd?: number | null}} Limits */

/** @param {HTMLElement} target @param {PageContext} context */
export function show(target, context) {
  const body = h("div");
  target.append(
    h("header", { class: "page-head" }, h("h1", {}, words.shell.pages.budgets)),
    h("p", { class: "lead" }, words.budgets.lead),
    body,
  );
  return showLoaded(
    body,
    () => context.client.budgets.get(),
    (budgets) => view(budgets, context, body),
  );
}

/** @param {any} budgets @param {PageContext} context @param {HTMLElement} body */
function view(budgets, context, body) {
  const workspace = limitFields(words.budgets.workspace, budgets.tenant);
  const eachUser = limitFields(words.budgets.eachUser, budgets.eachUser);
  const people = h("div", { class: "people" });
  const addPerson = (/** @type {any} */ person = {}) => people.append(personRow(person));
  budgets.users.forEach(addPerson);
  const problem = h("div", { class: "form-problem", role: "alert", hidden: true });
  const form = h(
    "form",
    { class: "budget-form" },
    h("section", {}, h("h2", {}, words.budgets.workspace), ...metersOf(budgets.tenant), workspace),
    h("section", {}, h("h2", {}, words.budgets.eachUser), eachUser),
    h(
      "section",
      {},
      h("h2", {}, words.budgets.singleUsers),
      people,
      h("button", { type: "button", class: "button", onclick: () => addPerson() }, words.budgets.addUser),
    ),
    h(
      "p",
      { class: "quiet-text" },
      words.budgets.daysEnd(formatInstant(budgets.dayRenewsAt), formatInstant(budgets.monthRenewsAt)),
    ),
    problem,
    h("button", { type: "submit", class: "button primary" }, words.budgets.save),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    const users = [...people.children].map((row) => ({ userId: inputValue(row, "userId"), ...readLimits(row) }));
    try {
      const changed = { tenant: readLimits(workspace), eachUser: readLimits(eachUser), users };
      await lockWhile(form, async () => {
        const saved = await context.client.budgets.update(changed);
        body.replaceChildren(view(saved, context, body));
        announce(words.budgets.saved);
      });
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
      problem.hidden = false;
    }
  });
  return form;
}

/** @param {any} budget */
function metersOf(budget) {
  const periods = /** @type {const} */ ([
    [words.budgets.today, budget.today, budget.dailyUsd],
    [words.budgets.thisMonth, budget.thisMonth, budget.monthlyUsd],
  ]);
  return periods.filter(([, spending]) => spending).map(([name, spending, limit]) => meter(name, spending, limit));
}

/** @param {string} name @param {any} spending @param {number | null} limit */
function meter(name, spending, limit) {
  const used = spending.spentUsd + spending.heldUsd;
  const held = spending.heldUsd ? words.budgets.held(formatCost(spending.heldUsd)) : "";
  const hasLimit = limit !== null && limit !== undefined;
  const spent = formatCost(spending.spentUsd);
  const text = hasLimit
    ? words.budgets.spentOf(spent, formatCost(limit), held, formatCost(spending.leftUsd))
    : words.budgets.spent(spent, held);
  const bar = h("progress", {
    max: 1,
    value: hasLimit ? (limit ? Math.min(1, used / limit) : 1) : 0,
    "aria-label": `${name}: ${text}`,
  });
  return h(
    "div",
    { class: "meter-row" },
    h("span", {}, name),
    hasLimit && bar,
    h("span", { class: "quiet-text" }, text),
  );
}

/** @param {string} whose @param {Limits} limits */
function limitFields(whose, limits) {
  const input = (
    /** @type {string} */ name,
    /** @type {string} */ label,
    /** @type {number | null | undefined} */ value,
  ) =>
    field(
      label,
      h("input", {
        name,
        type: "number",
        min: "0",
        step: "any",
        inputMode: "decimal",
        value: value ?? "",
        placeholder: words.budgets.noLimit,
        "aria-label": `${whose}: ${label}`,
      }),
    );
  return h(
    "div",
    { class: "limits" },
    input("dailyUsd", words.budgets.aDay, limits.dailyUsd),
    input("monthlyUsd", words.budgets.aMonth, limits.monthlyUsd),
  );
}

/** @param {any} person */
function personRow(person) {
  const name = h("input", { name: "userId", required: true, value: person.userId ?? "", maxLength: 200 });
  const row = h("div", { class: "person" }, field(words.budgets.userId, name), limitFields(words.budgets.user, person));
  const left = metersOf(person);
  row.append(
    iconButton("close", words.budgets.removeUser, () => row.remove()),
    ...left,
  );
  return row;
}

/** @param {Element} row @param {string} name */
function inputValue(row, name) {
  return /** @type {HTMLInputElement} */ (row.querySelector(`[name=${name}]`)).value.trim();
}

/** @param {Element} row */
function readLimits(row) {
  /** @type {Limits} */
  const limits = {};
  for (const name of /** @type {const} */ (["dailyUsd", "monthlyUsd"])) {
    const text = inputValue(row, name);
    if (text !== "") limits[name] = Number(text);
  }
  return limits;
}
