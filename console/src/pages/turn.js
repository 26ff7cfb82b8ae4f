/** One turn: what it used, its rounds and tool calls with their times, and its log. */

import { h, number, showLoaded, table } from "../dom.js";
import { formatClock, formatCost, formatCount, formatDuration, formatInstant } from "../format.js";
import { roundsOf } from "../turn-timeline.js";
import { words } from "../words/index.js";
import { cancelButton, isOpen, statusTag } from "./turn-status.js";

/** @import { PageContext } from "../shell/shell.js" */

const REFRESH_MS = 3_000;
const MAX_PAGES = 20;
const MAX_LOG_LINES = 1_000;

/** @param {HTMLElement} target @param {PageContext} context @param {string} id */
export function showTurn(target, context, id) {
  const body = h("div");
  const actions = h("div", { class: "row-actions" });
  target.append(
    h("a", { class: "back", href: "#/turns" }, words.turn.all),
    h("header", { class: "page-head" }, h("h1", {}, words.turn.title), actions),
    body,
  );
  let isLive = false;
  /** @type {{isRefresh: boolean}} */
  const refresh = { isRefresh: true };
  const load = (options = { isRefresh: false }) =>
    showLoaded(
      body,
      () => loadTurn(context, id),
      (turn) => {
        if (isOpen(turn.status) && !actions.childElementCount)
          actions.replaceChildren(cancelButton(turn.report, context, () => load()));
        else if (!isOpen(turn.status)) actions.replaceChildren();
        isLive = isOpen(turn.status);
        return turnView(turn);
      },
      options,
    );
  const timer = setInterval(() => {
    if (isLive && document.visibilityState === "visible" && !body.hasAttribute("aria-busy")) load(refresh);
  }, REFRESH_MS);
  context.signal.addEventListener("abort", () => clearInterval(timer));
  return load();
}

/** @param {PageContext} context @param {string} id */
async function loadTurn({ client, signal }, id) {
  const [status, report] = await Promise.all([
    client.bridges.get(id, { signal }),
    client.bridges.report(id, { signal }),
  ]);
  const log = [...report.log];
  let after = report.nextAfter;
  for (let page = 1; after !== undefined && page < MAX_PAGES; page += 1) {
    const next = await client.bridges.report(id, { after, signal });
    log.push(...next.log);
    after = next.nextAfter;
  }
  const lines = log.map(({ event, ...line }) => ({ ...event, ...line }));
  return { status: status.status, report, log: lines, isCut: after !== undefined };
}

/** @param {{status: string, report: any, log: any[], isCut: boolean}} turn */
function turnView({ status, report, log, isCut }) {
  const last = log[log.length - 1];
  const end = isOpen(status) ? Date.now() : last && Date.parse(last.at);
  const duration = end ? Math.max(0, end - Date.parse(report.startedAt)) : 0;
  const figures = [
    [words.usage.cost, formatCost(report.costUsd)],
    [words.turn.time, formatDuration(duration)],
    [words.turns.rounds, formatCount(report.rounds)],
    [words.usage.promptTokens, formatCount(report.promptTokens)],
    [words.usage.completionTokens, formatCount(report.completionTokens)],
  ];
  const list = h("dl", { class: "figures" });
  list.append(...figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  const facts = words.turn.facts(
    report.userId,
    report.scope,
    report.undoes ? words.turns.undo : report.modelId,
    formatInstant(report.startedAt),
  );
  const ending = log.find((line) => line.type === "error");
  return [
    h("div", { class: "facts" }, statusTag(status), h("span", { class: "quiet-text" }, facts)),
    ending && h("p", { class: "problem" }, ending.message),
    report.undoes && undoneTurn(report.undoes),
    list,
    h("section", {}, h("h2", {}, words.turn.whatItDid), roundsView(log, status, report.undoes)),
    report.modelRequests.length > 0 && h("section", {}, requestsTable(report.modelRequests)),
    h("section", {}, logView(log, isCut)),
    h("p", { class: "quiet-text ids" }, words.turn.ids(report.bridgeId, report.conversationId)),
  ];
}

/** @param {string} id */
function undoneTurn(id) {
  const link = h("a", { href: `#/turns/${encodeURIComponent(id)}` }, words.turn.anotherTurn);
  return h("p", {}, `${words.turn.undoes} `, link, ".");
}

/** @param {any[]} log @param {string} status @param {string} [undoes] */
function roundsView(log, status, undoes) {
  const rounds = roundsOf(log);
  const nothing = undoes || !isOpen(status) ? words.turn.noRounds : words.turn.noRequests;
  if (!rounds.length) return h("p", { class: "quiet-text" }, nothing);
  return h("ol", { class: "timeline" }, ...rounds.map(roundItem));
}

/** @param {import("../turn-timeline.js").RoundLine} round */
function roundItem(round) {
  const first = round.firstByte === undefined ? "" : words.turn.firstText(formatDuration(round.firstByte));
  const text = round.characters ? words.turn.characters(formatCount(round.characters)) : "";
  const took = round.milliseconds === undefined ? words.turn.underWay : formatDuration(round.milliseconds);
  const facts = [took, first, text].filter(Boolean).join(" · ");
  return h(
    "li",
    {},
    h(
      "div",
      { class: "round-line" },
      h("strong", {}, words.turn.round(round.round)),
      h("span", { class: "quiet-text" }, facts),
    ),
    h("ul", {}, ...round.tools.map(toolItem)),
  );
}

/** @param {import("../turn-timeline.js").ToolLine} tool */
function toolItem(tool) {
  const kind = { done: "tag good", failed: "tag bad", open: "tag live", dropped: "tag" }[tool.state];
  const time = tool.milliseconds === undefined ? "" : formatDuration(tool.milliseconds);
  const input = typeof tool.input === "string" ? tool.input : JSON.stringify(tool.input, null, 2);
  const state = h("span", { class: kind }, words.turn.calls[tool.state]);
  const details = h(
    "details",
    {},
    h("summary", {}, h("code", {}, tool.name), state, h("span", { class: "time" }, time)),
    tool.error && h("p", { class: "tool-error" }, tool.error),
    h("pre", { tabIndex: 0 }, input ?? ""),
  );
  details.dataset.key = tool.id;
  return h("li", {}, details);
}

/** @param {any[]} requests */
function requestsTable(requests) {
  const { prompt, completion, cost } = words.usage;
  const { roundColumn, outcome, cached } = words.turn;
  const columns = [roundColumn, outcome, number(prompt), number(cached), number(completion), number(cost)];
  const rows = requests.map((request) => [
    String(request.round),
    request.isEstimated ? words.turn.estimated(request.outcome) : request.outcome,
    formatCount(request.promptTokens),
    formatCount(request.cacheReadTokens),
    formatCount(request.completionTokens),
    formatCost(request.costUsd),
  ]);
  return table(words.turn.requests, columns, rows);
}

/** @param {any[]} log @param {boolean} isCut */
function logView(log, isCut) {
  const lines = log.slice(0, MAX_LOG_LINES).map(({ seq, at, type, ...rest }) => {
    const members = Object.keys(rest).length ? JSON.stringify(rest) : "";
    return `${String(seq).padStart(5)}  ${formatClock(at)}  ${type.padEnd(16)} ${members}`;
  });
  if (isCut || log.length > MAX_LOG_LINES) lines.push(words.turn.logIsLonger);
  const details = h(
    "details",
    { class: "log" },
    h("summary", {}, words.turn.log(formatCount(log.length))),
    h("pre", { tabIndex: 0 }, lines.join("\n")),
  );
  details.dataset.key = "log";
  return details;
}
