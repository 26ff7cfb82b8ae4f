/** The assistant beside the content of a space. It stays while a person goes from page to page of it. */

import { h } from "../dom.js";
import { words } from "../words/index.js";
import { ASSISTANT_EVENT } from "./refresh.js";

/** @import { PageContext } from "../shell/shell.js" */

/** @import { SpacePage } from "./space-page.js" */
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
 * @param {SpacePage} page
 * @param {string} space
 */
export async function showAssistant(pane, context, page, space) {
  await import("@fermata/panel");
  if (context.signal.aborted) return;
  const panel = panels.get(page.scope) ?? makePanel(context, page);
  panels.set(page.scope, panel);
  panel.space = space;
  if (panel.parentElement !== pane) pane.replaceChildren(panel);
}

/** @param {PageContext} context @param {SpacePage} page */
function makePanel({ client, open }, { scope, readOpen }) {
  const made = /** @type {any} */ (document.createElement("fermata-panel"));
  made.scope = scope;
  made.hasSettings = true;
  made.messages = words.content.panels[scope];
  if (readOpen) made.executor = { tools: [], execute: refuse, snapshot: () => ({ snapshot: readOpen(location.hash) }) };
  made.client = client;
  made.addEventListener("fermata-settings", () => open("providers"));
  made.addEventListener("fermata-sign-in", () => location.reload());
  made.addEventListener(ASSISTANT_EVENT, () => dispatchEvent(new Event(ASSISTANT_EVENT)));
  return made;
}

/** Its executor only says what is open: all of the assistant's tools are the service's. */
async function refuse() {
  throw new Error("nobody carries it out");
}
