/** The assistant beside the content. It stays while a person goes from page to page. */

import { h } from "../dom.js";
import { words } from "../words/index.js";
import { ASSISTANT_EVENT } from "./refresh.js";

/** @import { PageContext } from "../shell/shell.js" */

/** @type {any} */
let panel;

/** @param {PageContext} context */
export function assistantPane(context) {
  const pane = h("aside", { class: "agent-pane content-agent", "aria-label": words.content.assistant });
  import("@fermata/panel").then(() => {
    panel ??= makePanel(context);
    pane.append(panel);
  });
  return pane;
}

/** @param {PageContext} context */
function makePanel({ client, open }) {
  const made = /** @type {any} */ (document.createElement("fermata-panel"));
  made.setAttribute("scope", "content");
  made.hasSettings = true;
  made.client = client;
  made.addEventListener("fermata-settings", () => open("providers"));
  made.addEventListener("fermata-sign-in", () => location.reload());
  made.addEventListener(ASSISTANT_EVENT, () => dispatchEvent(new Event(ASSISTANT_EVENT)));
  return made;
}
