/** Content: the sites of the workspace, their documents, images and models, and change sets that wait to be merged. */

import { showChangeSet } from "../content/change-set-page.js";
import { showChangeSets } from "../content/change-sets.js";
import { showDocuments } from "../content/document-list.js";
import { showDocument } from "../content/document-page.js";
import { showMedia } from "../content/media.js";
import { showAsset } from "../content/media-asset.js";
import { showModel } from "../content/model-page.js";
import { showModels } from "../content/models.js";
import { showSpacePage } from "../content/space-page.js";
import { words } from "../words/index.js";

/** @import { PageContext } from "../shell/shell.js" */
/** @import { PagePart } from "../content/space-page.js" */

/** @returns {PagePart[]} */
function listParts() {
  const names = words.content.parts;
  return [
    {
      name: names.documents,
      path: "documents",
      show: (target, view, model, id) =>
        id ? showDocument(target, view, model, id) : showDocuments(target, view, model),
    },
    { name: names.media, path: "media", show: (target, view, id) => (id ? showAsset : showMedia)(target, view, id) },
    { name: names.models, path: "models", show: (target, view, id) => (id ? showModel : showModels)(target, view, id) },
    {
      name: names.changeSets,
      path: "change-sets",
      show: (target, view, id) => (id ? showChangeSet : showChangeSets)(target, view, id),
    },
  ];
}

/** @param {HTMLElement} target @param {PageContext} context @param {string} path */
export function show(target, context, path) {
  return showSpacePage(target, context, path, {
    path: "content",
    scope: "cms",
    lead: words.content.lead,
    parts: listParts(),
  });
}
