/** The assistant beside the content of a space. It stays while a person goes from page to page of it. */

import { h } from "../dom.js";
import { words } from "../words/index.js";
import { ASSISTANT_EVENT } from "./refresh.js";

/** @import { PageContext } from "../shell/shell.js" */

/** @typedef {"cms" | "studio"} ContentScope */

/** @type {Map<ContentScope, any>} */
const panels = new Map();

export function assistantPane() {
  return h("aside", { class: "agent-pane content-agent", "aria-label": words.content.assistant });
}

/**
 * Let an assistant work in a space.
 *
 * @param {HTMLElement} pane
 * @param {PageContext} context
 * @param {ContentScope} scope
 * @param {string} space
 */
export async function showAssistant(pane, context, scope, space) {
  await import("@fermata/panel");
  if (context.signal.aborted) return;
  const panel = panels.get(scope) ?? makePanel(context, scope);
  panels.set(scope, panel);
  panel.space = space;
  if (panel.parentElement !== pane) pane.replaceChildren(panel);
}

/** @param {PageContext} context @param {ContentScope} scope */
function makePanel({ client, open }, scope) {
  const made = /** @type {any} */ (document.createElement("fermata-panel"));
  made.scope = scope;
  made.hasSettings = true;
  made.messages = words.content.panels[scope];
  made.client = client;
  made.addEventListener("fermata-settings", () => open("providers"));
  made.addEventListener("fermata-sign-in", () => location.reload());
  made.addEventListener(ASSISTANT_EVENT, () => dispatchEvent(new Event(ASSISTANT_EVENT)));
  return made;
}
