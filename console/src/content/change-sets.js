/** Change sets: what waits to be merged, and what it would change. */

import { announce, askInDialog, emptyView, h, number, problemView, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { listDifferences, toText } from "./content-difference.js";
import { differenceView } from "./difference-view.js";
import { refreshRegularly } from "./refresh.js";

/** @import { SpaceView } from "../pages/content.js" */

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
    h("a", { href: linkTo("change-sets", id) }, title || untitled),
    stateTag(status),
    user,
    formatInstant(createdAt),
    formatCount(documents),
  ]);
  const heads = [columns.title, columns.status, columns.by, columns.when, number(columns.documents)];
  return table(words.content.parts.changeSets, heads, rows);
}

/** @param {string} status */
function stateTag(status) {
  const kind = /** @type {Record<string, string>} */ ({ open: "tag live", merged: "tag good" });
  return h("span", { class: kind[status] ?? "tag" }, words.content.changeSets.states[status] ?? status);
}

/** @param {HTMLElement} target @param {SpaceView} view @param {string} id */
export function showChangeSet(target, view, id) {
  const body = h("div");
  target.append(h("a", { class: "back", href: view.linkTo("change-sets") }, words.content.changeSets.back), body);
  const load = () =>
    showLoaded(
      body,
      () => readWithBases(view, id),
      ({ changeSet, documents }) => changeSetView(changeSet, documents, view, load),
    );
  return load();
}

/**
 * Read a change set, and of each of its documents the version that it has begun with.
 *
 * @param {SpaceView} view
 * @param {string} id
 */
async function readWithBases({ content, context }, id) {
  const options = { signal: context.signal };
  const { changeSet, documents } = await content.changeSets.get(id, options);
  const bases = documents.map(({ model, id: document, baseVersion }) =>
    baseVersion ? content.documents.version(model, document, baseVersion, options) : undefined,
  );
  const read = await Promise.all(bases);
  return { changeSet, documents: documents.map((document, index) => ({ document, base: read[index] })) };
}

/** @param {any} changeSet @param {{document: any, base: any}[]} documents @param {SpaceView} view @param {() => void} reload */
function changeSetView(changeSet, documents, view, reload) {
  const { untitled, nothing } = words.content.changeSets;
  const problem = h("div");
  const title = h("h2", { class: "document-title" }, changeSet.title || untitled);
  const parts = documents.map(({ document, base }) => documentPart(document, base));
  return [
    h("header", { class: "page-head" }, h("div", { class: "tags" }, title, stateTag(changeSet.status))),
    problem,
    ...(parts.length ? parts : [h("p", { class: "quiet-text" }, nothing)]),
    changeSet.status === "open" && h("div", { class: "form-end" }, ...actionsOf(changeSet, problem, view, reload)),
  ];
}

/** @param {any} document @param {any} base */
function documentPart(document, base) {
  const { isNew, isDeleted } = words.content.changeSets;
  const name = `${document.model}/${document.id}`;
  const tag = document.deleted ? isDeleted : !base && isNew;
  const head = h("h3", {}, document.title || base?.title || name, " ", h("span", { class: "quiet-text" }, name));
  if (tag) head.append(" ", h("span", { class: "tag" }, tag));
  const differences = document.deleted ? null : differenceView(listDifferences(base, document));
  return h("section", { "aria-label": name }, head, differences);
}

/** @param {any} changeSet @param {HTMLElement} problem @param {SpaceView} view @param {() => void} reload */
function actionsOf({ id }, problem, { content, linkTo }, reload) {
  const { merge, merged, discard, discardTitle, discardText, discarded } = words.content.changeSets;
  const mergeNow = async (/** @type {{prefer?: "ours" | "theirs"}} */ decision = {}) => {
    try {
      await content.changeSets.merge(id, decision);
      announce(merged);
      reload();
    } catch (error) {
      problem.replaceChildren(mergeProblem(/** @type {any} */ (error), mergeNow));
      problem.scrollIntoView({ block: "nearest" });
    }
  };
  const discardIt = async () => {
    const options = { action: discard, isDangerous: true, onAction: () => content.changeSets.discard(id) };
    if (!(await askInDialog(discardTitle, [h("p", {}, discardText)], options))) return;
    announce(discarded);
    location.hash = linkTo("change-sets");
  };
  return [
    h("button", { type: "button", class: "button", onclick: discardIt }, discard),
    h("button", { type: "button", class: "button primary", onclick: () => mergeNow() }, merge),
  ];
}

/** @param {any} error @param {(decision: {prefer: "ours" | "theirs"}) => void} merge */
function mergeProblem(error, merge) {
  if (error.code !== "mergeConflict") return problemView(error);
  const { conflicts, conflictColumns, keepOurs, keepTheirs } = words.content.changeSets;
  const rows = error.details.conflicts.flatMap((/** @type {any} */ { model, id, fields }) =>
    fields.map((/** @type {any} */ { field, theirs, ours }) => [
      `${model}/${id} ${field}`,
      toText(theirs),
      toText(ours),
    ]),
  );
  const button = (/** @type {string} */ text, /** @type {"ours" | "theirs"} */ prefer) =>
    h("button", { type: "button", class: "button", onclick: () => merge({ prefer }) }, text);
  return h(
    "div",
    { class: "problem", role: "alert" },
    table(conflicts, [conflictColumns.field, conflictColumns.theirs, conflictColumns.ours], rows),
    h("div", { class: "dialog-actions" }, button(keepTheirs, "theirs"), button(keepOurs, "ours")),
  );
}
