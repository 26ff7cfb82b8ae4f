/** The assistant beside the content of a space. It stays while a person goes from page to page of it. */

import { h } from "../dom.js";
import { words } from "../words/index.js";
import { ASSISTANT_EVENT } from "./refresh.js";

/** @import { PageContext } from "../shell/shell.js" */

/** @type {any} */
let panel;

export function assistantPane() {
  return h("aside", { class: "agent-pane content-agent", "aria-label": words.content.assistant });
}

/**
 * Let the assistant work in a space.
 *
 * @param {HTMLElement} pane
 * @param {PageContext} context
 * @param {string} space
 */
export async function showAssistant(pane, context, space) {
  await import("@fermata/panel");
  if (context.signal.aborted) return;
  panel ??= makePanel(context);
  panel.space = space;
  if (panel.parentElement !== pane) pane.replaceChildren(panel);
}

/** @param {PageContext} context */
function makePanel({ client, open }) {
  const made = /** @type {any} */ (document.createElement("fermata-panel"));
  made.scope = "cms";
  made.hasSettings = true;
  made.client = client;
  made.addEventListener("fermata-settings", () => open("providers"));
  made.addEventListener("fermata-sign-in", () => location.reload());
  made.addEventListener(ASSISTANT_EVENT, () => dispatchEvent(new Event(ASSISTANT_EVENT)));
  return made;
}
