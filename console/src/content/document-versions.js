/** The versions of a document: what has changed with each, and how one becomes the newest again. */

import { announce, h, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { actionButton } from "../pages/tools.js";
import { words } from "../words/index.js";
import { listDifferences } from "./content-difference.js";
import { differenceView } from "./difference-view.js";

/** @import { SpaceView } from "./space-page.js" */

const PAGE_SIZE = 20;

/**
 * @param {HTMLElement} target
 * @param {SpaceView} view
 * @param {string} model
 * @param {string} id
 * @param {() => void} onRestored
 */
export function showVersions(target, view, model, id, onRestored) {
  let limit = PAGE_SIZE;
  const load = () =>
    showLoaded(
      target,
      () => view.content.documents.versions(model, id, { limit }, { signal: view.context.signal }),
      ({ versions, nextBefore }) => {
        const older = () => {
          limit = Math.min(200, limit + 3 * PAGE_SIZE);
          return load();
        };
        const hasMore = nextBefore && limit < 200;
        const more = h(
          "button",
          { type: "button", class: "button more", onclick: older },
          words.content.document.olderVersions,
        );
        return [versionsTable(versions, view, model, id, onRestored), hasMore && more];
      },
    );
  return load();
}

/** @param {any[]} versions @param {SpaceView} view @param {string} model @param {string} id @param {() => void} onRestored */
function versionsTable(versions, view, model, id, onRestored) {
  const { versions: title, columns, current } = words.content.document;
  const newest = versions[0]?.version;
  const rows = versions.map((version) => {
    const isCurrent = version.version === newest && !version.deleted;
    return [
      formatCount(version.version),
      h("div", {}, whatOf(version), isCurrent && h("span", { class: "tag" }, current)),
      byOf(version),
      formatInstant(version.at),
      h("div", { class: "row-actions" }, ...actionsOf(version, isCurrent, view, model, id, onRestored)),
    ];
  });
  return table(title, [columns.version, columns.what, columns.by, columns.when, columns.actions], rows);
}

/** @param {any} version */
function whatOf({ action }) {
  return `${words.content.document.actions[action] ?? action} `;
}

/** @param {any} version */
function byOf({ source, user, turn }) {
  if (source !== "agent") return user;
  const text = words.content.document.byAssistant(user);
  return turn ? h("a", { href: `#/turns/${encodeURIComponent(turn)}` }, text) : text;
}

/**
 * @param {any} version
 * @param {boolean} isCurrent
 * @param {SpaceView} view
 * @param {string} model
 * @param {string} id
 * @param {() => void} onRestored
 */
function actionsOf({ version, deleted }, isCurrent, { content, may }, model, id, onRestored) {
  const { compare, restore, restored } = words.content.document;
  const read = async (/** @type {number} */ wanted) => {
    if (wanted < 1) return undefined;
    const found = await content.documents.version(model, id, wanted).catch((error) => {
      if (error.status === 404) return undefined; // it is too old to be kept
      throw error;
    });
    return found?.deleted ? undefined : found;
  };
  const button = actionButton(compare, String(version), async () => {
    const row = button.closest("tr");
    if (row?.nextElementSibling?.classList.contains("difference-row")) {
      row.nextElementSibling.remove();
      return;
    }
    const [before, after] = await Promise.all([read(version - 1), read(version)]);
    const shown = differenceView(listDifferences(before, after));
    row?.after(h("tr", { class: "difference-row" }, h("td", { colSpan: row.childElementCount }, shown)));
  });
  const bringBack = async () => {
    await content.documents.restore(model, id, version);
    announce(restored(version));
    onRestored();
  };
  const mayRestore = may.has("write") && !isCurrent && !deleted;
  return [button, mayRestore && actionButton(restore, String(version), bringBack)];
}
