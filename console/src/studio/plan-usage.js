/** What the workspace has used of its plan in this month. */

import { h, number, showLoaded, table } from "../dom.js";
import { formatCost, formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";

/** @import { SpaceView } from "../content/space-page.js" */

const MEGABYTE = 1_000_000;

/** @param {HTMLElement} target @param {SpaceView} view */
export function showPlanUsage(target, { client, context }) {
  const load = () =>
    showLoaded(
      target,
      () => client.plan({ signal: context.signal }),
      (plan) => planView(plan),
    );
  return load();
}

/** @param {any} plan */
function planView({ plan, state, endsAt, locked, renewsAt, meters, quotas, features, models = ["*"] }) {
  const { title, states, lockedText, ends, renews, month, atOnce, columns, onlyModels, has } = words.studio.plan;
  const featureNames = words.studio.plan.features;
  const known = states[/** @type {keyof typeof states} */ (state)] ?? state;
  const when = endsAt ? ` ${ends(formatInstant(endsAt))}` : "";
  return h(
    "div",
    { class: "plan-usage" },
    h("h2", { class: "document-title" }, title(plan)),
    h("p", { class: "quiet-text" }, `${known}${when}`),
    locked && h("p", { class: "problem", role: "status" }, lockedText),
    table(month, [columns.what, number(columns.used), number(columns.included), columns.left], meters.map(meterRow)),
    h("p", { class: "quiet-text" }, renews(formatInstant(renewsAt))),
    table(atOnce, [columns.what, number(columns.used), number(columns.included)], quotas.map(quotaRow)),
    !models.includes("*") && h("p", {}, onlyModels(models.join(", "))),
    features.length > 0 && h("h3", {}, has),
    features.length > 0 &&
      h("ul", { class: "tags" }, ...features.map((/** @type {string} */ name) => featureTag(name, featureNames))),
  );
}

/** @param {any} meter */
function meterRow({ name, used, included, overageUsd }) {
  const { names, unlimited, overage } = words.studio.plan;
  const share = shareOf(used, included);
  const left =
    share === undefined
      ? null
      : h("progress", { max: 1, value: share, "aria-label": names[name] ?? name, class: share >= 1 ? "full" : "" });
  const more = overageUsd ? h("div", { class: "quiet-text" }, overage(formatCost(overageUsd))) : null;
  return [
    h("div", {}, names[name] ?? name, more),
    formatCount(used),
    included === null ? unlimited : formatCount(included),
    left,
  ];
}

/**
 * Return how much of what is included is used, from 0 to 1; undefined where there is no limit.
 *
 * @param {number} used
 * @param {number | null} included
 */
export function shareOf(used, included) {
  if (included === null) return undefined;
  return included === 0 ? 1 : Math.min(1, used / included);
}

/** @param {any} quota */
function quotaRow({ name, used, included }) {
  const { names, unlimited, uncounted, megabytes } = words.studio.plan;
  const show = (/** @type {number} */ count) =>
    name.endsWith("Bytes") ? megabytes(formatCount(Math.round((10 * count) / MEGABYTE) / 10)) : formatCount(count);
  return [names[name] ?? name, used === null ? uncounted : show(used), included === null ? unlimited : show(included)];
}

/** @param {string} name @param {Record<string, string>} names */
function featureTag(name, names) {
  return h("li", { class: "tag good" }, names[name] ?? name);
}
