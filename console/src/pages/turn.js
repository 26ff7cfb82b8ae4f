/** One turn: what it used, its rounds and tool calls with their times, and its log. */

import { h, number, showLoaded, table } from "../dom.js";
import { formatCost, formatCount, formatDuration, formatInstant } from "../format.js";
import { roundsOf } from "../turn-timeline.js";
import { cancelButton, statusTag } from "./turn-status.js";

/** @import { PageContext } from "../shell/shell.js" */

const MAX_PAGES = 20;
const MAX_LOG_LINES = 1_000;

/** @param {HTMLElement} target @param {PageContext} context @param {string} id */
export function showTurn(target, context, id) {
  const body = h("div");
  const actions = h("div", { class: "row-actions" });
  target.append(
    h("a", { class: "back", href: "#/turns" }, "‹ All turns"),
    h("header", { class: "page-head" }, h("h1", {}, "Turn"), actions),
    body,
  );
  const load = () =>
    showLoaded(
      body,
      () => loadTurn(context, id),
      (turn) => {
        const isOpen = turn.status === "running" || turn.status === "paused";
        actions.replaceChildren(...(isOpen ? [cancelButton(turn.report, context, load)] : []));
        return turnView(turn);
      },
    );
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
  const duration = last ? Date.parse(last.at) - Date.parse(report.startedAt) : 0;
  const figures = [
    ["Cost", formatCost(report.costUsd)],
    ["Time", formatDuration(duration)],
    ["Rounds", formatCount(report.rounds)],
    ["Prompt tokens", formatCount(report.promptTokens)],
    ["Completion tokens", formatCount(report.completionTokens)],
  ];
  const list = h("dl", { class: "figures" });
  list.append(...figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  const facts = `${report.userId} · ${report.scope} · ${report.modelId} · started ${formatInstant(report.startedAt)}`;
  const ending = log.find((line) => line.type === "error");
  return [
    h("div", { class: "facts" }, statusTag(status), h("span", { class: "quiet-text" }, facts)),
    ending && h("p", { class: "problem" }, ending.message),
    list,
    h("section", {}, h("h2", {}, "What it did"), roundsView(log)),
    h("section", {}, requestsTable(report.modelRequests)),
    h("section", {}, logView(log, isCut)),
    h("p", { class: "quiet-text ids" }, `Turn ${report.bridgeId} · conversation ${report.conversationId}`),
  ];
}

/** @param {any[]} log */
function roundsView(log) {
  const rounds = roundsOf(log);
  if (!rounds.length) return h("p", { class: "quiet-text" }, "It has asked no model yet.");
  return h("ol", { class: "timeline" }, ...rounds.map(roundItem));
}

/** @param {import("../turn-timeline.js").RoundLine} round */
function roundItem(round) {
  const first = round.firstByte === undefined ? "" : `first text after ${formatDuration(round.firstByte)}`;
  const text = round.characters ? `${formatCount(round.characters)} characters` : "";
  const took = round.milliseconds === undefined ? "under way" : formatDuration(round.milliseconds);
  const facts = [took, first, text].filter(Boolean).join(" · ");
  return h(
    "li",
    {},
    h(
      "div",
      { class: "round-line" },
      h("strong", {}, `Round ${round.round}`),
      h("span", { class: "quiet-text" }, facts),
    ),
    h("ul", {}, ...round.tools.map(toolItem)),
  );
}

/** @param {import("../turn-timeline.js").ToolLine} tool */
function toolItem(tool) {
  const kinds = { done: ["tag good", "done"], failed: ["tag bad", "failed"], open: ["tag live", "waiting"] };
  const [kind, words] = kinds[tool.state];
  const time = tool.milliseconds === undefined ? "" : formatDuration(tool.milliseconds);
  const input = typeof tool.input === "string" ? tool.input : JSON.stringify(tool.input, null, 2);
  return h(
    "li",
    {},
    h(
      "details",
      {},
      h("summary", {}, h("code", {}, tool.name), h("span", { class: kind }, words), h("span", { class: "time" }, time)),
      tool.error && h("p", { class: "tool-error" }, tool.error),
      h("pre", {}, input ?? ""),
    ),
  );
}

/** @param {any[]} requests */
function requestsTable(requests) {
  const columns = ["Round", "Outcome", number("Prompt"), number("Cached"), number("Completion"), number("Cost")];
  const rows = requests.map((request) => [
    String(request.round),
    request.isEstimated ? `${request.outcome} (estimated)` : request.outcome,
    formatCount(request.promptTokens),
    formatCount(request.cacheReadTokens),
    formatCount(request.completionTokens),
    formatCost(request.costUsd),
  ]);
  return table("Requests to the provider", columns, rows);
}

/** @param {any[]} log @param {boolean} isCut */
function logView(log, isCut) {
  const lines = log.slice(0, MAX_LOG_LINES).map(({ seq, at, type, ...rest }) => {
    const members = Object.keys(rest).length ? JSON.stringify(rest) : "";
    return `${String(seq).padStart(5)}  ${at.slice(11, 23)}  ${type.padEnd(16)} ${members}`;
  });
  if (isCut || log.length > MAX_LOG_LINES) lines.push("… the log is longer");
  const count = `${formatCount(log.length)} events`;
  return h(
    "details",
    { class: "log" },
    h("summary", {}, `Log · ${count}`),
    h("pre", { tabIndex: 0 }, lines.join("\n")),
  );
}
