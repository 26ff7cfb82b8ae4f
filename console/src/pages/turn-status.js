/** What the list and the detail of turns share. */

import { announce, askInDialog, h } from "../dom.js";

/** @import { PageContext } from "../shell/shell.js" */

const WORDS = {
  running: ["Running", "live"],
  paused: ["Waiting", "live"],
  done: ["Done", "good"],
  error: ["Failed", "bad"],
  cancelled: ["Cancelled", ""],
  expired: ["Expired", ""],
};

/** @param {string} status @param {string} [code] */
export function statusTag(status, code) {
  const [words, kind] = WORDS[/** @type {keyof typeof WORDS} */ (status)] ?? [status, ""];
  const reason = code && h("div", { class: "quiet-text" }, code.replaceAll("_", " "));
  return h("div", {}, h("span", { class: `tag ${kind}` }, words), reason);
}

/** @param {any} turn @param {PageContext} context @param {() => void} reload */
export function cancelButton(turn, { client }, reload) {
  const cancel = async () => {
    const words = h("p", {}, "What it has done so far is kept. Its user sees that it was cancelled.");
    const done = await askInDialog("Cancel this turn?", [words], {
      action: "Cancel the turn",
      isDangerous: true,
      onAction: () => client.bridges.cancel(turn.bridgeId),
    });
    if (!done) return;
    announce("The turn was cancelled.");
    reload();
  };
  return h("button", { type: "button", class: "link", onclick: cancel }, "Cancel");
}
