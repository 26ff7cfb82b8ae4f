/** Usage: what was spent, by day, user, scope and model. The numbers are those of the ledger. */

import { emptyView, h, icon, number, saveFile, showLoaded, table } from "../dom.js";
import { formatCost, formatCount, formatDay, ZONE } from "../format.js";
import { listDays, startOfPeriod, usageToCsv } from "../usage-period.js";

/** @import { PageContext } from "../shell/shell.js" */

const PERIODS = [
  { days: 1, label: "Today" },
  { days: 7, label: "7 days" },
  { days: 30, label: "30 days" },
];

/** @param {HTMLElement} target @param {PageContext} context @param {string} rest */
export function show(target, context, rest) {
  const days = PERIODS.find((period) => String(period.days) === rest)?.days ?? 30;
  const choices = PERIODS.map((period) =>
    h("a", { href: `#/usage/${period.days}`, ...(period.days === days && { "aria-current": "true" }) }, period.label),
  );
  const body = h("div");
  target.append(
    h(
      "header",
      { class: "page-head" },
      h("h1", {}, "Usage"),
      h("div", { class: "segments", role: "group", "aria-label": "Period" }, ...choices),
    ),
    body,
  );
  const request = () => context.client.audit.get({ since: startOfPeriod(days), tz: ZONE });
  return showLoaded(body, request, (audit) => view(audit, days));
}

/** @param {any} audit @param {number} days */
function view(audit, days) {
  const download = () => saveFile(`usage-${days}-days.csv`, "text/csv;charset=utf-8", usageToCsv(audit));
  const button = h("button", { type: "button", class: "button", onclick: download }, icon("download"), "Download CSV");
  if (!audit.byScope.length) {
    const action = h("a", { class: "button primary", href: "#/editor" }, "Open the editor");
    return emptyView(
      "Nothing was asked in this time",
      "The first prompt shows here a few seconds after its answer.",
      action,
    );
  }
  return [
    totalsView(audit.totals),
    h(
      "section",
      {},
      h(
        "div",
        { class: "section-head" },
        h("h2", {}, "Cost a day"),
        h(
          "span",
          { class: "quiet-text" },
          `Days of ${ZONE}, at most ${formatCost(Math.max(...audit.byDay.map((/** @type {any} */ row) => row.costUsd)))}`,
        ),
      ),
      barsView(audit.byDay, days),
    ),
    usageTable("By user", audit.byUser, (row) => row.userLabel),
    usageTable("By scope", audit.byScope, (row) => row.scope),
    usageTable("By model", audit.byModel, (row) => `${row.modelId} · ${row.providerId}`),
    h("section", {}, button),
  ];
}

/** @param {any} totals */
function totalsView(totals) {
  const figures = [
    ["Cost", formatCost(totals.costUsd)],
    ["Prompt tokens", formatCount(totals.promptTokens)],
    ["Completion tokens", formatCount(totals.completionTokens)],
    ["Read from cache", formatCount(totals.cacheReadTokens)],
    ["Conversations", formatCount(totals.chatCount)],
  ];
  const list = h("dl", { class: "figures" });
  list.append(...figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  const words = `${formatCount(totals.unpricedRequests ?? 0)} requests have no known price and count as $0.00.`;
  return [list, totals.unpricedRequests ? h("p", { class: "quiet-text" }, words) : null].filter(Boolean);
}

/** @param {any[]} byDay @param {number} count */
function barsView(byDay, count) {
  const costs = new Map(byDay.map((row) => [row.day, row.costUsd]));
  const days = listDays(count);
  const most = Math.max(...days.map((day) => costs.get(day) ?? 0), 0);
  const bars = days.map((day) => {
    const cost = costs.get(day) ?? 0;
    const bar = h("span", { class: "bar" });
    bar.style.setProperty("--part", String(most ? cost / most : 0));
    const words = `${formatDay(day)}: ${formatCost(cost)}`;
    return h("li", { title: words }, h("span", { class: "hidden-words" }, words), bar);
  });
  const labels = h("div", { class: "bar-labels", "aria-hidden": "true" }, h("span", {}, formatDay(days[0])));
  if (days.length > 1) labels.append(h("span", {}, formatDay(days[days.length - 1])));
  return h("div", { class: "chart" }, h("ol", { class: "bars" }, ...bars), labels);
}

/** @param {string} caption @param {any[]} rows @param {(row: any) => string} nameOf */
function usageTable(caption, rows, nameOf) {
  const columns = [
    caption.replace("By ", "").replace(/^./, (letter) => letter.toUpperCase()),
    number("Prompt"),
    number("Completion"),
    number("Conversations"),
    number("Cost"),
  ];
  const cells = rows.map((row) => [
    nameOf(row),
    formatCount(row.promptTokens),
    formatCount(row.completionTokens),
    formatCount(row.chatCount),
    formatCost(row.costUsd),
  ]);
  return h("section", {}, table(caption, columns, cells));
}
