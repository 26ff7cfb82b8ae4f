/** The studio: a project's models and entries, what waits to be merged, its health and its members. */

import { showChangeSet } from "../content/change-set-page.js";
import { showChangeSets } from "../content/change-sets.js";
import { showDocument } from "../content/document-page.js";
import { showMedia } from "../content/media.js";
import { showAsset } from "../content/media-asset.js";
import { showModel } from "../content/model-page.js";
import { showModels } from "../content/models.js";
import { showSpacePage } from "../content/space-page.js";
import { showConversationKeys } from "../studio/conversation-keys.js";
import { showEntries } from "../studio/entry-list.js";
import { showFormEditor } from "../studio/form-editor.js";
import { showHealth } from "../studio/health.js";
import { showMembers } from "../studio/members.js";
import { readOpenContext } from "../studio/open-context.js";
import { showPlanUsage } from "../studio/plan-usage.js";
import { showSubmissions } from "../studio/submissions.js";
import { words } from "../words/index.js";

/** @import { PageContext } from "../shell/shell.js" */
/** @import { PagePart } from "../content/space-page.js" */

/** @returns {PagePart[]} */
function listParts() {
  const names = words.studio.parts;
  return [
    {
      name: names.entries,
      path: "documents",
      show: (target, view, model, id, locale) =>
        id ? showDocument(target, view, model, id, locale) : showEntries(target, view, model),
    },
    { name: names.models, path: "models", show: (target, view, id) => (id ? showModel : showModels)(target, view, id) },
    {
      name: words.content.parts.media,
      path: "media",
      show: (target, view, id) => (id ? showAsset(target, view, id) : showMedia(target, view)),
    },
    {
      name: names.changeSets,
      path: "change-sets",
      show: (target, view, id) => (id ? showChangeSet : showChangeSets)(target, view, id),
    },
    {
      name: names.submissions,
      path: "submissions",
      show: (target, view, model, part) =>
        part === "form" ? showFormEditor(target, view, model) : showSubmissions(target, view, model),
    },
    { name: names.health, path: "health", show: showHealth },
    { name: names.members, path: "members", needs: "manage", show: showMembers },
    { name: names.keys, path: "keys", needs: "keys", show: showConversationKeys },
    { name: names.plan, path: "plan", needs: "plan", show: showPlanUsage },
  ];
}

/** @param {HTMLElement} target @param {PageContext} context @param {string} path */
export function show(target, context, path) {
  return showSpacePage(target, context, path, {
    path: "studio",
    scope: "studio",
    lead: words.studio.lead,
    parts: listParts(),
    readOpen: readOpenContext,
  });
}
