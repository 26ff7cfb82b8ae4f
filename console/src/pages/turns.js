/** Turns: what runs, waits and has ended in the workspace; and one turn in detail. */

import { emptyView, h, number, problemView, showLoaded, table } from "../dom.js";
import { formatCost, formatCount, formatDuration, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { showTurn } from "./turn.js";
import { cancelButton, isOpen, statusTag } from "./turn-status.js";

/** @import { PageContext } from "../shell/shell.js" */

const REFRESH_MS = 5_000;

/** @param {HTMLElement} target @param {PageContext} context @param {string} id */
export function show(target, context, id) {
  return id ? showTurn(target, context, id) : showList(target, context);
}

/** @param {HTMLElement} target @param {PageContext} context */
function showList(target, context) {
  const body = h("div");
  target.append(
    h("header", { class: "page-head" }, h("h1", {}, words.shell.pages.turns)),
    h("p", { class: "lead" }, words.turns.lead),
    body,
  );
  /** @type {any[]} */
  let older = [];
  /** @type {string | undefined} */
  let next;
  const load = (options = { isRefresh: false }) =>
    showLoaded(
      body,
      () => context.client.bridges.list({ signal: context.signal }),
      (page) => {
        const known = new Set(page.turns.map((/** @type {any} */ turn) => turn.bridgeId));
        const rest = older.filter((turn) => !known.has(turn.bridgeId));
        const cursor = older.length ? next : page.nextCursor;
        return listView([...page.turns, ...rest], cursor, context, () => load(), addOlder);
      },
      options,
    );
  const addOlder = (/** @type {any[]} */ turns, /** @type {string | undefined} */ cursor) => {
    older = [...older, ...turns];
    next = cursor;
  };
  const timer = setInterval(() => {
    if (document.visibilityState === "visible" && !body.hasAttribute("aria-busy")) load({ isRefresh: true });
  }, REFRESH_MS);
  context.signal.addEventListener("abort", () => clearInterval(timer));
  return load();
}

/**
 * @param {any[]} turns
 * @param {string | undefined} cursor
 * @param {PageContext} context
 * @param {() => void} reload
 * @param {(turns: any[], cursor: string | undefined) => void} addOlder
 */
function listView(turns, cursor, context, reload, addOlder) {
  if (!turns.length && !cursor) {
    const action = h("a", { class: "button primary", href: "#/editor" }, words.openEditor);
    return emptyView(words.turns.empty, words.turns.emptyText, action);
  }
  const open = turns.filter((turn) => isOpen(turn.status));
  const ended = turns.filter((turn) => !isOpen(turn.status));
  const sections = [];
  if (open.length) {
    sections.push(h("section", {}, turnsTable(words.turns.open, open, context, reload)));
  }
  const container = h("section", {}, turnsTable(words.turns.ended, ended, context));
  if (!ended.length) container.append(h("p", { class: "quiet-text" }, words.turns.noneEnded));
  if (cursor) container.append(moreButton(cursor, container, context, addOlder));
  return [...sections, container];
}

/** @param {string} cursor @param {HTMLElement} container @param {PageContext} context @param {(turns: any[], cursor: string | undefined) => void} addOlder */
function moreButton(cursor, container, context, addOlder) {
  const button = h("button", { type: "button", class: "button more" }, words.turns.older);
  let next = /** @type {string | undefined} */ (cursor);
  button.addEventListener("click", async () => {
    button.disabled = true;
    if (button.nextElementSibling) button.nextElementSibling.remove();
    try {
      /** @type {any[]} */
      let turns = [];
      while (next && !turns.length) {
        const page = await context.client.bridges.list({ cursor: next });
        next = page.nextCursor;
        turns = page.turns;
      }
      addOlder(turns, next);
      const body = container.querySelector("tbody");
      body?.append(...turns.map((/** @type {any} */ turn) => rowOf(turn, context)));
      if (!next) button.remove();
    } catch (error) {
      button.after(problemView(error));
    } finally {
      button.disabled = false;
    }
  });
  return button;
}

/** @param {string} caption @param {any[]} turns @param {PageContext} context @param {() => void} [reload] of those that can be cancelled */
function turnsTable(caption, turns, context, reload) {
  const { when, state, rounds, actions } = words.turns;
  const { user, scope, model, cost } = words.usage;
  const columns = [when, state, user, scope, model, number(rounds), number(cost), ...(reload ? [actions] : [])];
  const view = table(caption, columns, []);
  view.querySelector("tbody")?.append(...turns.map((turn) => rowOf(turn, context, reload)));
  return view;
}

/** @param {any} turn @param {PageContext} context @param {() => void} [reload] */
function rowOf(turn, context, reload) {
  const duration = turn.endedAt && turn.startedAt ? Date.parse(turn.endedAt) - Date.parse(turn.startedAt) : undefined;
  const instant = turn.startedAt ?? turn.endedAt;
  const when = instant ? formatInstant(instant) : words.turns.expiredStart;
  const cells = [
    h(
      "td",
      {},
      h("a", { href: `#/turns/${encodeURIComponent(turn.bridgeId)}` }, when),
      duration !== undefined && h("div", { class: "quiet-text" }, formatDuration(duration)),
    ),
    h("td", {}, statusTag(turn.status, turn.errorCode)),
    h("td", {}, turn.userId),
    h("td", {}, turn.scope),
    h("td", {}, turn.undoes ? words.turns.undo : turn.modelId),
    h("td", { class: "number" }, formatCount(turn.rounds)),
    h("td", { class: "number" }, formatCost(turn.costUsd)),
    reload && h("td", {}, h("div", { class: "row-actions" }, cancelButton(turn, context, reload))),
  ];
  return h("tr", {}, ...cells);
}
