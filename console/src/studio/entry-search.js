/** Find entries of all models of a project by what they say. */

import { statusTag } from "../content/document-list.js";
import { field, h, showLoaded, table } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";

/** @import { SpaceView } from "../content/space-page.js" */

const MOST = 50;

/**
 * Make the field of a search, and what it finds in place of a list.
 *
 * @param {SpaceView} view
 * @param {HTMLElement} list It is hidden while something is looked for.
 * @returns {{form: HTMLElement, found: HTMLElement}}
 */
export function makeEntrySearch(view, list) {
  const { find, findHint } = words.studio.entries;
  const input = h("input", { type: "search", maxLength: 500, autocomplete: "off", placeholder: findHint });
  const found = h("div", { hidden: true });
  const show = () => {
    const query = input.value.trim();
    list.hidden = Boolean(query);
    found.hidden = !query;
    if (!query) return;
    showLoaded(
      found,
      () => view.content.search.find(query, { type: "entry", limit: MOST }, { signal: view.context.signal }),
      (matches) => matchesView(matches, view),
    );
  };
  const form = h("form", { class: "find", role: "search" }, field(find, input));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  input.addEventListener("search", show); // it was emptied by its cross
  input.addEventListener("input", () => input.value.trim() || show());
  return { form, found };
}

/** @param {any[]} matches @param {SpaceView} view */
function matchesView(matches, { linkTo }) {
  const { foundNone, foundCount, columns } = words.studio.entries;
  const { status } = words.content.documents.columns;
  if (!matches.length) return h("p", { class: "quiet-text", role: "status" }, foundNone);
  const rows = matches.map(({ model, id, title, slug, status: state }) => [
    h("a", { href: linkTo("documents", model, id) }, h("bdi", {}, title || slug || id)),
    h("bdi", {}, model),
    statusTag(state),
  ]);
  return table(
    foundCount(matches.length, formatCount(matches.length)),
    [columns.entry, words.content.model, status],
    rows,
  );
}
