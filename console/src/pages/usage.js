/** Usage: what was spent, by day, user, scope and model. The numbers are those of the ledger. */

import { emptyView, h, icon, number, saveFile, showLoaded, table } from "../dom.js";
import { formatCost, formatCount, formatDay, ZONE } from "../format.js";
import { listDays, startOfPeriod, usageToCsv } from "../usage-period.js";
import { words } from "../words/index.js";

/** @import { PageContext } from "../shell/shell.js" */

const PERIODS = /** @type {const} */ ([1, 7, 30]);

/** Without it, spreadsheets take the file for one of an old encoding. */
const BYTE_ORDER_MARK = "\uFEFF";

/** @param {HTMLElement} target @param {PageContext} context @param {string} rest */
export function show(target, context, rest) {
  const days = PERIODS.find((period) => String(period) === rest) ?? 30;
  const choices = PERIODS.map((period) =>
    h(
      "a",
      { href: `#/usage/${period}`, ...(period === days && { "aria-current": "true" }) },
      words.usage.periods[period],
    ),
  );
  const body = h("div");
  target.append(
    h(
      "header",
      { class: "page-head" },
      h("h1", {}, words.shell.pages.usage),
      h("div", { class: "segments", role: "group", "aria-label": words.usage.period }, ...choices),
    ),
    body,
  );
  const request = () => context.client.audit.get({ since: startOfPeriod(days), tz: ZONE });
  return showLoaded(body, request, (audit) => view(audit, days));
}

/** @param {any} audit @param {number} days */
function view(audit, days) {
  const download = () =>
    saveFile(words.usage.fileName(days), "text/csv;charset=utf-8", BYTE_ORDER_MARK + usageToCsv(audit));
  const button = h(
    "button",
    { type: "button", class: "button", onclick: download },
    icon("download"),
    words.usage.download,
  );
  if (!audit.byScope.length) {
    const action = h("a", { class: "button primary", href: "#/editor" }, words.openEditor);
    return emptyView(words.usage.empty, words.usage.emptyText, action);
  }
  const most = formatCost(Math.max(0, ...audit.byDay.map((/** @type {any} */ row) => row.costUsd)));
  return [
    totalsView(audit.totals),
    h(
      "section",
      {},
      h(
        "div",
        { class: "section-head" },
        h("h2", {}, words.usage.costADay),
        h("span", { class: "quiet-text" }, words.usage.daysOf(ZONE, most)),
      ),
      barsView(audit.byDay, days),
    ),
    usageTable(words.usage.byUser, words.usage.user, audit.byUser, (row) => row.userLabel),
    usageTable(words.usage.byScope, words.usage.scope, audit.byScope, (row) => row.scope),
    usageTable(words.usage.byModel, words.usage.model, audit.byModel, (row) => `${row.modelId} · ${row.providerId}`),
    h("section", {}, button),
  ];
}

/** @param {any} totals */
function totalsView(totals) {
  const figures = [
    [words.usage.cost, formatCost(totals.costUsd)],
    [words.usage.promptTokens, formatCount(totals.promptTokens)],
    [words.usage.completionTokens, formatCount(totals.completionTokens)],
    [words.usage.cached, formatCount(totals.cacheReadTokens)],
    [words.usage.conversations, formatCount(totals.chatCount)],
  ];
  const list = h("dl", { class: "figures" });
  list.append(...figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  const unpriced = words.usage.unpriced(formatCount(totals.unpricedRequests ?? 0), formatCost(0));
  return [list, totals.unpricedRequests ? h("p", { class: "quiet-text" }, unpriced) : null].filter(Boolean);
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
    const title = `${formatDay(day)}: ${formatCost(cost)}`;
    return h("li", { title }, h("span", { class: "hidden-words" }, title), bar);
  });
  const labels = h("div", { class: "bar-labels", "aria-hidden": "true" }, h("span", {}, formatDay(days[0])));
  if (days.length > 1) labels.append(h("span", {}, formatDay(days[days.length - 1])));
  return h("div", { class: "chart" }, h("ol", { class: "bars" }, ...bars), labels);
}

/** @param {string} caption @param {string} first @param {any[]} rows @param {(row: any) => string} nameOf */
function usageTable(caption, first, rows, nameOf) {
  const columns = [
    first,
    number(words.usage.prompt),
    number(words.usage.completion),
    number(words.usage.conversations),
    number(words.usage.cost),
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
