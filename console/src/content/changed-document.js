/** A document of a change set: what it would change, beside what it has begun with. */

import { h } from "../dom.js";
import { words } from "../words/index.js";
import { assetImage } from "./asset-image.js";
import { listDifferences } from "./content-difference.js";
import { differenceView } from "./difference-view.js";

/** @import { SpaceView } from "./space-page.js" */
/** @import { RelationTitles } from "./relation-titles.js" */

const ASSET = /^(?:• )?asset:([A-Za-z0-9_-]{1,40})$/;
const META_MODEL = "model";

/**
 * @param {any} document Its `base` is the version that it has begun with; nothing for a new one.
 * @param {any} model Its definition; undefined if it is not known.
 * @param {SpaceView} view
 * @param {RelationTitles} titles
 */
export function changedDocumentView(document, model, view, titles) {
  const { isNew, isDeleted, deletedText } = words.content.changeSets;
  const { base, deleted } = document;
  const name = `${document.model}/${document.id}`;
  const stored = base ? h("a", { href: addressOf(document, view) }, name) : name;
  const title = h("bdi", {}, document.title || base?.title || name);
  const head = h("h3", {}, title, " ", h("span", { class: "quiet-text" }, stored));
  const tag = deleted ? isDeleted : !base && isNew;
  if (tag) head.append(" ", h("span", { class: deleted ? "tag bad" : "tag good" }, tag));
  const options = { isWhole: deleted || !base, ...relationsOf(model, view, titles) };
  if (!deleted) return part(name, head, differenceView(listDifferences(base, document), options));
  const gone = differenceView(listDifferences(base, undefined), options);
  return part(name, head, h("details", { "data-key": name }, h("summary", {}, deletedText), gone));
}

/** @param {string} name @param {HTMLElement} head @param {HTMLElement} body */
function part(name, head, body) {
  return h("section", { "aria-label": name, class: "changed-document" }, head, body);
}

/** @param {any} document @param {SpaceView} view */
function addressOf({ model, id }, { linkTo }) {
  return model === META_MODEL ? linkTo("models", id) : linkTo("documents", model, id);
}

/**
 * Return how entries that a field points to, and images, are shown: by their names, and as they look.
 *
 * @param {any} model
 * @param {SpaceView} view
 * @param {RelationTitles} titles
 * @returns {import("./difference-view.js").DifferenceOptions}
 */
function relationsOf(model, view, titles) {
  const targetsOf = (/** @type {string} */ field) => {
    const definition = model?.fields?.[field.slice(field.indexOf(".") + 1)];
    return /^relations?$/.test(definition?.type) ? [definition.model ?? []].flat() : undefined;
  };
  return {
    readLines: (field, value) => {
      const targets = targetsOf(field);
      if (!targets || value === undefined || value === null) return undefined;
      return [value].flat().map((target) => nameOfTarget(target, targets));
    },
    showLine: (field, line) => {
      if (targetsOf(field)) return titles.link(line);
      const asset = ASSET.exec(line);
      return asset
        ? h("span", { class: "difference-image" }, assetImage(view, asset[1], "thumbnail"), line)
        : undefined;
    },
  };
}

/** @param {any} target An id, or a model and an id. @param {string[]} models */
function nameOfTarget(target, models) {
  if (typeof target === "string") return `${models[0] ?? ""}/${target}`;
  return `${target?.model ?? ""}/${target?.ref ?? ""}`;
}
