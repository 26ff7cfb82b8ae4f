/** Change sets: what waits to be merged, and what it would change. */

import { announce, askInDialog, emptyView, h, number, problemView, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { sayBreakingChanges } from "./breaking-changes.js";
import { listDifferences, toText } from "./content-difference.js";
import { differenceView, scrolled } from "./difference-view.js";
import { refreshRegularly } from "./refresh.js";

/** @import { SpaceView } from "./space-page.js" */
/** @typedef {{prefer?: "ours" | "theirs", allowBreaking?: boolean}} MergeDecision */

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
function stateTag(status) {
  const kind = /** @type {Record<string, string>} */ ({ open: "tag live", merged: "tag good" });
  return h("span", { class: kind[status] ?? "tag" }, words.content.changeSets.states[status] ?? status);
}

/** @param {HTMLElement} target @param {SpaceView} view @param {string} id */
export function showChangeSet(target, view, id) {
  const body = h("div");
  target.append(h("a", { class: "back", href: view.linkTo("change-sets") }, words.content.changeSets.back), body);
  let shown = "";
  const load = (/** @type {{isRefresh?: boolean}} */ options = {}) =>
    showLoaded(
      body,
      () => readWithBases(view, id),
      ({ changeSet, documents }) => {
        const state = `${changeSet.status} ${changeSet.version}`;
        if (options.isRefresh && state === shown) return null; // what a person is reading stays as it is
        shown = state;
        return changeSetView(changeSet, documents, view, load);
      },
      options,
    );
  refreshRegularly(view.context, () => load({ isRefresh: true }));
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
  const { untitled, contents, by } = words.content.changeSets;
  const { status, title, branch, user, createdAt } = changeSet;
  const problem = h("div", { class: "form-problem-place" });
  const name = h("h2", { class: "document-title" }, h("bdi", {}, title || untitled));
  const parts = documents.map(({ document, base }) => documentPart(document, base, view));
  const isOpen = status === "open";
  const nothing = contents[/** @type {keyof typeof contents} */ (status)] ?? "";
  return [
    h("header", { class: "page-head" }, h("div", { class: "tags" }, name, stateTag(status))),
    h("p", { class: "quiet-text" }, by(user, formatInstant(createdAt)), branch && branch !== title ? ` ${branch}` : ""),
    ...(parts.length ? parts : [h("p", { class: "quiet-text" }, nothing)]),
    problem,
    isOpen && h("div", { class: "form-end" }, ...actionsOf(changeSet, problem, view, reload)),
  ];
}

/** @param {any} document @param {any} base @param {SpaceView} view */
function documentPart(document, base, view) {
  const { isNew, isDeleted } = words.content.changeSets;
  const name = `${document.model}/${document.id}`;
  const tag = document.deleted ? isDeleted : !base && isNew;
  const stored = base ? h("a", { href: addressOf(document, view) }, name) : name;
  const title = h("bdi", {}, document.title || base?.title || name);
  const head = h("h3", {}, title, " ", h("span", { class: "quiet-text" }, stored));
  if (tag) head.append(" ", h("span", { class: "tag" }, tag));
  const differences = document.deleted ? null : differenceView(listDifferences(base, document));
  return h("section", { "aria-label": name }, head, differences);
}

/** @param {any} document @param {SpaceView} view */
function addressOf({ model, id }, { linkTo }) {
  return model === "model" ? linkTo("models", id) : linkTo("documents", model, id);
}

/** @param {any} changeSet @param {HTMLElement} problem @param {SpaceView} view @param {() => void} reload */
function actionsOf({ id }, problem, { content, linkTo }, reload) {
  const { merge, merged, discard, discardTitle, discardText, discarded } = words.content.changeSets;
  const mergeNow = async (/** @type {MergeDecision} */ decision = {}) => {
    button.disabled = true;
    try {
      await content.changeSets.merge(id, decision);
      announce(merged);
      reload();
    } catch (error) {
      const mergeSo = (/** @type {MergeDecision} */ more) => mergeNow({ ...decision, ...more });
      problem.replaceChildren(mergeProblem(/** @type {any} */ (error), mergeSo, reload));
      problem.scrollIntoView({ block: "nearest" });
    } finally {
      button.disabled = false;
    }
  };
  const discardIt = async () => {
    const options = { action: discard, isDangerous: true, onAction: () => content.changeSets.discard(id) };
    if (!(await askInDialog(discardTitle, [h("p", {}, discardText)], options))) return;
    announce(discarded);
    location.hash = linkTo("change-sets");
  };
  const button = h("button", { type: "button", class: "button primary", onclick: () => mergeNow() }, merge);
  return [h("button", { type: "button", class: "button", onclick: discardIt }, discard), button];
}

/**
 * @param {any} error
 * @param {(decision: MergeDecision) => void} merge
 * @param {() => void} reload
 */
function mergeProblem(error, merge, reload) {
  const problems = error.details?.problems;
  if (error.code === "breakingChanges") return breakingProblem(error.details?.breakingChanges ?? {}, merge);
  if (error.code !== "mergeConflict") {
    const shown = problemView(error, reload);
    if (problems?.length) shown.append(problemList(problems));
    return shown;
  }
  const { conflicts, conflictsText, conflictColumns, keepOurs, keepTheirs } = words.content.changeSets;
  const rows = error.details.conflicts.flatMap((/** @type {any} */ { model, id, fields }) =>
    fields.map((/** @type {any} */ { field, base, theirs, ours }) => [
      `${model}/${id} ${field}`,
      ...[base, theirs, ours].map(cellText),
    ]),
  );
  const { field, base, theirs, ours } = conflictColumns;
  const button = (/** @type {string} */ text, /** @type {"ours" | "theirs"} */ prefer) =>
    h("button", { type: "button", class: "button", onclick: () => merge({ prefer }) }, text);
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", {}, conflictsText),
    table(conflicts, [field, base, theirs, ours], rows),
    h("div", { class: "dialog-actions" }, button(keepTheirs, "theirs"), button(keepOurs, "ours")),
  );
}

/** @param {Record<string, string[]>} changes By the ids of models. @param {(decision: MergeDecision) => void} merge */
function breakingProblem(changes, merge) {
  const { breaking, mergeBreaking } = words.content.changeSets;
  const items = Object.entries(changes).flatMap(([model, own]) =>
    sayBreakingChanges(own).map((text) => h("li", {}, h("code", {}, model), " ", h("bdi", {}, text))),
  );
  const onclick = () => merge({ allowBreaking: true });
  const button = h("button", { type: "button", class: "button danger", onclick }, mergeBreaking);
  const list = h("ul", { class: "problems" }, ...items);
  return h("div", { class: "problem", role: "alert" }, h("p", {}, breaking), list, button);
}

/** @param {any} value */
function cellText(value) {
  const text = toText(value);
  return h("div", { class: "cell-text", dir: "auto", role: "group", ...scrolled(text) }, text);
}

/** @param {any[]} problems */
function problemList(problems) {
  const items = problems.map(({ field, message }) => h("li", {}, h("code", {}, field), " ", message));
  return h("ul", { class: "problems" }, ...items);
}
