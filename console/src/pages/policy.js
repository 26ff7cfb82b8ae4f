/** The policy of approvals: which calls need a person in this workspace. */

import { announce, field, h, lockWhile, showLoaded } from "../dom.js";
import { formatInstant } from "../format.js";
import { words } from "../words/index.js";

/** @import { PageContext } from "../shell/shell.js" */

const SWITCHES = /** @type {const} */ (["writesAfterOutsideContent", "newTools", "separateApprover"]);
const SECONDS_PER_HOUR = 3600;
const RULE_LINES = 10;

/** @param {HTMLElement} target @param {PageContext} context */
export function show(target, context) {
  const body = h("div");
  target.append(
    h("header", { class: "page-head" }, h("h1", {}, words.shell.pages.policy)),
    h("p", { class: "lead" }, words.policy.lead),
    body,
  );
  return showLoaded(
    body,
    () => context.client.approvals.policy({ signal: context.signal }),
    (policy) => view(policy, context, body),
  );
}

/** @param {any} policy @param {PageContext} context @param {HTMLElement} body */
function view(policy, context, body) {
  const problem = h("div", { class: "form-problem", role: "alert", hidden: true });
  const { turnCost, turnCostHint, wait, waitHint, rules, rulesHint, save, setBy } = words.policy;
  const form = h(
    "form",
    { class: "policy-form" },
    h("fieldset", {}, h("legend", {}, words.policy.ask), ...SWITCHES.map((name) => switchOf(name, policy[name]))),
    field(turnCost, numberInput("turnCostUsd", policy.turnCostUsd), turnCostHint),
    field(wait, numberInput("waitHours", policy.waitSeconds && policy.waitSeconds / SECONDS_PER_HOUR), waitHint),
    field(rules, rulesInput(policy.rules), rulesHint),
    policy.warnings && h("ul", { class: "form-problem", role: "alert" }, ...policy.warnings.map(warningOf)),
    policy.updatedAt && h("p", { class: "quiet-text" }, setBy(policy.updatedBy, formatInstant(policy.updatedAt))),
    problem,
    h("button", { type: "submit", class: "button primary" }, save),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    try {
      const policy = readForm(/** @type {HTMLFormElement} */ (form));
      await lockWhile(form, async () => {
        const saved = await context.client.approvals.setPolicy(policy);
        body.replaceChildren(view(saved, context, body));
        announce(words.policy.saved);
      });
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
      problem.hidden = false;
    }
  });
  return form;
}

/** @param {typeof SWITCHES[number]} name @param {boolean} checked */
function switchOf(name, checked) {
  return h("label", { class: "check" }, h("input", { type: "checkbox", name, checked }), words.policy.switches[name]);
}

/** @param {string} name @param {number | null | undefined} value */
function numberInput(name, value) {
  return h("input", { name, type: "number", min: "0", step: "any", inputMode: "decimal", value: value ?? "" });
}

/** @param {any[]} rules */
function rulesInput(rules) {
  return h("textarea", {
    name: "rules",
    class: "code",
    rows: RULE_LINES,
    spellcheck: false,
    value: rules.map(lineOf).join("\n"),
  });
}

/** @param {string} warning */
function warningOf(warning) {
  return h("li", {}, warning);
}

/** A rule without the conditions that every call meets, on one line. @param {any} rule */
function lineOf(rule) {
  const kept = Object.entries(rule).filter(([, value]) => !(Array.isArray(value) && !value.length) && value !== null);
  return JSON.stringify(Object.fromEntries(kept));
}

/** @param {HTMLFormElement} form */
function readForm(form) {
  const data = new FormData(form);
  const numberOf = (/** @type {string} */ name) => (data.get(name) ? Number(data.get(name)) : undefined);
  const hours = numberOf("waitHours");
  return {
    rules: readRules(String(data.get("rules"))),
    ...Object.fromEntries(SWITCHES.map((name) => [name, data.has(name)])),
    turnCostUsd: numberOf("turnCostUsd"),
    waitSeconds: hours === undefined ? undefined : Math.round(hours * SECONDS_PER_HOUR),
  };
}

/** @param {string} text */
function readRules(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  return lines.map((line) => {
    try {
      return JSON.parse(line);
    } catch {
      throw new Error(words.policy.notJson(line));
    }
  });
}
