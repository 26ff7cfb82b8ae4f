/** What the workspace has used of its plan in this month. */

import { h, number, showLoaded, table } from "../dom.js";
import { formatCost, formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { judgeUse } from "./meter-use.js";

/** @import { SpaceView } from "../content/space-page.js" */

const [MEGABYTE, GIGABYTE] = [1_000_000, 1_000_000_000];

/** @param {HTMLElement} target @param {SpaceView} view */
export function showPlanUsage(target, { client, context }) {
  return showLoaded(target, () => client.plan({ signal: context.signal }), planView);
}

/** @param {any} plan */
function planView({ plan, state, endsAt, locked, renewsAt, meters, quotas, features, models = ["*"] }) {
  const { title, states, lockedText, ends, month, atOnce, columns, onlyModels, has } = words.studio.plan;
  const featureNames = words.studio.plan.features;
  const known = states[/** @type {keyof typeof states} */ (state)] ?? state;
  const when = endsAt ? ` ${ends(formatInstant(endsAt))}` : "";
  const heads = [columns.what, number(columns.used), number(columns.included), columns.left];
  const renews = formatInstant(renewsAt);
  const media = meters.find((/** @type {any} */ { name }) => name === "mediaByteHours");
  const isBilled = (/** @type {any} */ { name }) => name === "mediaBytes" && Boolean(media?.overageUsd);
  return h(
    "div",
    { class: "plan-usage" },
    h("h2", { class: "document-title" }, title(plan)),
    h("p", { class: "quiet-text" }, `${known}${when}`),
    locked && h("p", { class: "problem", role: "status" }, lockedText),
    table(
      month,
      [...heads, columns.renews],
      meters.map((/** @type {any} */ meter) => [...useRow(meter, renews), renews]),
    ),
    table(
      atOnce,
      heads,
      quotas.map((/** @type {any} */ quota) => useRow({ ...quota, unit: unitOf(quota), isBilled: isBilled(quota) })),
    ),
    !models.includes("*") && h("p", {}, onlyModels(models.join(", "))),
    features.length > 0 && h("h3", {}, has),
    features.length > 0 &&
      h("ul", { class: "tags" }, ...features.map((/** @type {string} */ name) => featureTag(name, featureNames))),
  );
}

/** @param {any} quota */
const unitOf = ({ name }) => (name.endsWith("Bytes") ? "bytes" : "uses");

/** @param {any} meter @param {string} [renews] When it is counted anew; without it, it is what there is at once. */
function useRow({ name, unit, used, included, overageUsd = null, isBilled = overageUsd !== null }, renews) {
  const { names, unlimited, uncounted, uncountedMedia, overage, overageOfMedia, largest } = words.studio.plan;
  const price = unit === "byteHours" ? overageOfMedia : overage;
  const isLargest = name === "fileBytes"; // of one thing, nothing is used
  const told = [
    overageUsd && included ? price(formatCost(overageUsd)) : "",
    used === null && unit === "byteHours" ? uncountedMedia : "",
    isLargest ? largest : "",
  ];
  const use = { name, used, included, isBilled };
  const notes = told.filter(Boolean).map((text) => h("div", { class: "quiet-text" }, text));
  return [
    h("div", {}, names[name] ?? name, isLargest ? null : useWarning(use, renews), ...notes),
    used === null ? uncounted : formatAmount(used, unit),
    included === null ? unlimited : formatAmount(included, unit),
    isLargest ? null : useMeter(names[name] ?? name, use),
  ];
}

/**
 * Show how much of a limit is used.
 *
 * @param {string} label
 * @param {Parameters<typeof judgeUse>[0]} use
 */
export function useMeter(label, use) {
  const { share, level } = judgeUse(use);
  if (share === undefined) return null;
  return h("progress", { max: 1, value: share, "aria-label": label, class: level === "full" ? "full" : "" });
}

/**
 * Warn near a limit, and say at it what becomes of more.
 *
 * @param {Parameters<typeof judgeUse>[0]} use
 * @param {string} [renews] When it is counted anew.
 */
export function useWarning(use, renews = "") {
  const { near, full } = words.studio.plan.warnings;
  const { share = 0, level, beyond } = judgeUse(use);
  if (level === "fine") return null;
  const text = level === "full" ? full[beyond](renews) : near(formatCount(Math.floor(100 * share)));
  return h("div", {}, h("span", { class: level === "full" ? "tag bad" : "tag warn" }, text));
}

/** @param {number} amount @param {string} unit */
function formatAmount(amount, unit) {
  const { megabytes, gigabytes, gigabyteHours } = words.studio.plan;
  if (unit === "uses") return formatCount(amount);
  const isLarge = amount >= GIGABYTE || unit === "byteHours";
  const rounded = formatCount(Math.round((100 * amount) / (isLarge ? GIGABYTE : MEGABYTE)) / 100);
  return (unit === "byteHours" ? gigabyteHours : isLarge ? gigabytes : megabytes)(rounded);
}

/** @param {string} name @param {Record<string, string>} names */
function featureTag(name, names) {
  return h("li", { class: "tag good" }, names[name] ?? name);
}
