/** The change sets of a space: what waits to be merged, and what was lately. */

import { emptyView, h, number, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { refreshRegularly } from "./refresh.js";

/** @import { SpaceView } from "./space-page.js" */

/** @param {HTMLElement} target @param {SpaceView} view */
export function showChangeSets(target, view) {
  const load = (options = {}) =>
    showLoaded(
      target,
      () => view.content.changeSets.list({ signal: view.context.signal }),
      (changeSets) => listView(changeSets, view),
      options,
    );
  refreshRegularly(view.context, () => load({ isRefresh: true }));
  return load();
}

/** @param {any[]} changeSets @param {SpaceView} view */
function listView(changeSets, { linkTo }) {
  const { columns, none, noneText, untitled } = words.content.changeSets;
  if (!changeSets.length) return emptyView(none, noneText);
  const rows = changeSets.map(({ id, title, status, documents, user, createdAt }) => [
    h("a", { href: linkTo("change-sets", id) }, h("bdi", {}, title || untitled)),
    stateTag(status),
    user,
    formatInstant(createdAt),
    formatCount(documents),
  ]);
  const heads = [columns.title, columns.status, columns.by, columns.when, number(columns.documents)];
  return table(words.content.parts.changeSets, heads, rows);
}

/** @param {string} status */
export function stateTag(status) {
  const kind = /** @type {Record<string, string>} */ ({ open: "tag live", merged: "tag good" });
  return h("span", { class: kind[status] ?? "tag" }, words.content.changeSets.states[status] ?? status);
}
