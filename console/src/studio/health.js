/** The health of a project: the score of its models, what is wrong in them, and how many change sets wait. */

import { refreshRegularly } from "../content/refresh.js";
import { emptyView, h, showLoaded, table } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";

/** @import { SpaceView } from "../content/space-page.js" */

const SEVERITIES = ["critical", "error", "warning"];

/** @param {HTMLElement} target @param {SpaceView} view */
export function showHealth(target, view) {
  const load = (options = {}) =>
    showLoaded(
      target,
      () => view.content.health.get({ signal: view.context.signal }),
      (health) => healthView(health, view),
      options,
    );
  refreshRegularly(view.context, () => load({ isRefresh: true }));
  return load();
}

/** @param {any} health @param {SpaceView} view */
function healthView({ healthScore, modelCount, validModels, warnings, changeSets }, view) {
  const { score, ofHundred, models, modelsText, waiting, waitingText, states } = words.studio.health;
  const figures = [
    [score, ofHundred(formatCount(healthScore))],
    [models, modelsText(formatCount(validModels), formatCount(modelCount))],
    [waiting, waitingText(formatCount(changeSets.open), formatCount(changeSets.refuseFrom))],
  ];
  const told = states[/** @type {keyof typeof states} */ (changeSets.status)];
  return [
    h(
      "dl",
      { class: "figures" },
      ...figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
    told && h("p", { class: "problem", role: "status" }, told),
    warningsView(warnings, view),
  ];
}

/** @param {any[]} warnings @param {SpaceView} view */
function warningsView(warnings, { linkTo }) {
  const { none, noneText, columns, severities, warnings: caption } = words.studio.health;
  if (!warnings.length) return emptyView(none, noneText);
  const rows = sortWarnings(warnings).map(({ model, field, severity, message }) => [
    h("span", { class: severity === "warning" ? "tag warn" : "tag bad" }, severities[severity] ?? severity),
    h("a", { href: linkTo("models", model) }, h("bdi", {}, field ? `${model}.${field}` : model)),
    h("bdi", {}, message),
  ]);
  return table(
    caption(warnings.length, formatCount(warnings.length)),
    [columns.severity, columns.where, columns.what],
    rows,
  );
}

/**
 * Put what matters most first.
 *
 * @param {any[]} warnings
 */
export function sortWarnings(warnings) {
  const rank = (/** @type {any} */ { severity }) => (SEVERITIES.indexOf(severity) + 4) % 4; // an unknown one is last
  return [...warnings].sort((one, other) => rank(one) - rank(other) || one.model.localeCompare(other.model));
}
