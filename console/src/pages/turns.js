/** Turns: what runs, waits and has ended in the workspace; and one turn in detail. */

import { emptyView, h, number, showLoaded, table } from "../dom.js";
import { formatCost, formatCount, formatDuration, formatInstant } from "../format.js";
import { showTurn } from "./turn.js";
import { cancelButton, statusTag } from "./turn-status.js";

/** @import { PageContext } from "../shell/shell.js" */

const REFRESH_MS = 5_000;
const OPEN = ["running", "paused"];

/** @param {HTMLElement} target @param {PageContext} context @param {string} id */
export function show(target, context, id) {
  return id ? showTurn(target, context, id) : showList(target, context);
}

/** @param {HTMLElement} target @param {PageContext} context */
function showList(target, context) {
  const body = h("div");
  target.append(
    h("header", { class: "page-head" }, h("h1", {}, "Turns")),
    h("p", { class: "lead" }, "One prompt until its answer is a turn. Those of all users of the workspace are here."),
    body,
  );
  /** @type {any[]} */
  let older = [];
  const load = () =>
    showLoaded(
      body,
      () => context.client.bridges.list({ signal: context.signal }),
      (page) => listView([...page.turns, ...older], page.nextCursor, context, load, addOlder),
    );
  const addOlder = (/** @type {any[]} */ turns) => {
    older = [...older, ...turns];
  };
  const timer = setInterval(() => {
    if (!older.length && document.visibilityState === "visible" && body.querySelector("[data-open]")) load();
  }, REFRESH_MS);
  context.signal.addEventListener("abort", () => clearInterval(timer));
  return load();
}

/**
 * @param {any[]} turns
 * @param {string | undefined} cursor
 * @param {PageContext} context
 * @param {() => void} reload
 * @param {(turns: any[]) => void} addOlder
 */
function listView(turns, cursor, context, reload, addOlder) {
  if (!turns.length && !cursor) {
    const action = h("a", { class: "button primary", href: "#/editor" }, "Open the editor");
    return emptyView("Nothing was asked yet", "A turn shows here as soon as somebody has sent a prompt.", action);
  }
  const open = turns.filter((turn) => OPEN.includes(turn.status));
  const ended = turns.filter((turn) => !OPEN.includes(turn.status));
  const sections = [];
  if (open.length) {
    const list = turnsTable("Running and waiting", open, context, reload);
    list.dataset.open = "";
    sections.push(h("section", {}, list));
  }
  const container = h("section", {}, turnsTable("Ended", ended, context, reload));
  if (cursor) container.append(moreButton(cursor, container, context, addOlder));
  return [...sections, container];
}

/** @param {string} cursor @param {HTMLElement} container @param {PageContext} context @param {(turns: any[]) => void} addOlder */
function moreButton(cursor, container, context, addOlder) {
  const button = h("button", { type: "button", class: "button more" }, "Show older turns");
  let next = /** @type {string | undefined} */ (cursor);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      /** @type {any[]} */
      let turns = [];
      while (next && !turns.length) {
        const page = await context.client.bridges.list({ cursor: next });
        next = page.nextCursor;
        turns = page.turns;
      }
      addOlder(turns);
      const body = container.querySelector("tbody");
      body?.append(...turns.map((/** @type {any} */ turn) => rowOf(turn, context)));
      if (!next) button.remove();
    } finally {
      button.disabled = false;
    }
  });
  return button;
}

/** @param {string} caption @param {any[]} turns @param {PageContext} context @param {() => void} reload */
function turnsTable(caption, turns, context, reload) {
  const columns = ["When", "State", "User", "Scope", "Model", number("Rounds"), number("Cost"), ""];
  const view = table(caption, columns, []);
  view.querySelector("tbody")?.append(...turns.map((turn) => rowOf(turn, context, reload)));
  return view;
}

/** @param {any} turn @param {PageContext} context @param {() => void} [reload] */
function rowOf(turn, context, reload) {
  const isOpen = OPEN.includes(turn.status);
  const duration = turn.endedAt && turn.startedAt ? Date.parse(turn.endedAt) - Date.parse(turn.startedAt) : undefined;
  const when = formatInstant(turn.startedAt ?? turn.endedAt);
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
    h("td", {}, turn.modelId),
    h("td", { class: "number" }, formatCount(turn.rounds)),
    h("td", { class: "number" }, formatCost(turn.costUsd)),
    h("td", {}, h("div", { class: "row-actions" }, isOpen && reload && cancelButton(turn, context, reload))),
  ];
  return h("tr", {}, ...cells);
}
