/** Why a change set was not merged, and how it is merged all the same: conflicts by field, and what breaks. */

import { h, problemView } from "../dom.js";
import { formatCount } from "../format.js";
import { words } from "../words/index.js";
import { sayBreakingChanges } from "./breaking-changes.js";
import { fieldName, scrolled } from "./difference-view.js";
import { toLines } from "./value-lines.js";
import { compareWords } from "./word-difference.js";

/** @import { SpaceView } from "./space-page.js" */
/** @typedef {{prefer?: "ours" | "theirs", allowBreaking?: boolean}} MergeDecision */

/** Fields that are shown. Of more, their number is. */
const MOST_CONFLICTS = 200;

/**
 * @param {any} error
 * @param {SpaceView} view
 * @param {(decision: MergeDecision) => void} merge
 * @param {() => void} reload
 */
export function mergeProblem(error, view, merge, reload) {
  const problems = error.details?.problems;
  if (error.code === "breakingChanges") return breakingProblem(error.details?.breakingChanges ?? {}, merge);
  if (error.code === "mergeConflict") return conflictProblem(error.details.conflicts, view, merge);
  const shown = problemView(error, reload);
  if (problems?.length) shown.append(problemList(problems));
  return shown;
}

/** @param {any[]} documents @param {SpaceView} view @param {(decision: MergeDecision) => void} merge */
function conflictProblem(documents, view, merge) {
  const { conflicts, conflictsText, keepOurs, keepTheirs, moreConflicts } = words.content.changeSets;
  const button = (/** @type {string} */ text, /** @type {"ours" | "theirs"} */ prefer) =>
    h("button", { type: "button", class: "button", onclick: () => merge({ prefer }) }, text);
  let room = MOST_CONFLICTS;
  const sections = documents.flatMap(({ model, id, fields }) => {
    const shown = fields.slice(0, room);
    room -= shown.length;
    return shown.length ? [documentConflicts(`${model}/${id}`, view.linkTo("documents", model, id), shown)] : [];
  });
  const left = documents.reduce((sum, { fields }) => sum + fields.length, 0) - (MOST_CONFLICTS - room);
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", {}, conflictsText),
    h("div", { class: "conflicts", role: "group", "aria-label": conflicts }, ...sections),
    left > 0 && h("p", {}, moreConflicts(left, formatCount(left))),
    h("div", { class: "dialog-actions" }, button(keepTheirs, "theirs"), button(keepOurs, "ours")),
  );
}

/** @param {string} name @param {string} address @param {any[]} fields */
function documentConflicts(name, address, fields) {
  return h(
    "section",
    { "aria-label": name },
    h("h3", {}, h("a", { href: address }, h("bdi", {}, name))),
    ...fields.map((field) => fieldConflict(name, field)),
  );
}

/** What was there, and what each side has made of it: words that the other side does not have are marked. @param {string} name @param {any} conflict */
function fieldConflict(name, { field, base, theirs, ours }) {
  const { base: was, theirs: stored, ours: here } = words.content.changeSets.conflictColumns;
  const texts = [base, theirs, ours].map((value) => toLines(value).join("\n"));
  const marked = compareWords(texts[1], texts[2]);
  const parts = [[{ text: texts[0], isChanged: false }], marked.before, marked.after];
  const rows = [was, stored, here].flatMap((label, index) => [
    h("dt", {}, label),
    h("dd", {}, sideView(label, texts[index], parts[index])),
  ]);
  return h(
    "div",
    { class: "conflict", role: "group", "aria-label": `${name} ${field}` },
    h("h4", {}, fieldName(field)),
    h("dl", { class: "values" }, ...rows),
  );
}

/** @param {string} label @param {string} text @param {import("./word-difference.js").TextPart[]} parts */
function sideView(label, text, parts) {
  const members = { dir: "auto", class: "cell-text", role: "group", "aria-label": label, ...scrolled(text) };
  if (!text) return h("div", members, h("i", {}, words.content.difference.absent));
  return h("div", members, ...parts.map((part) => (part.isChanged ? h("b", {}, part.text) : part.text)));
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

/** @param {any[]} problems */
function problemList(problems) {
  const items = problems.map(({ field, message }) => h("li", {}, h("code", {}, field), " ", message));
  return h("ul", { class: "problems" }, ...items);
}
