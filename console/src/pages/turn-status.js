/** What the list and the detail of turns share. */

import { announce, askInDialog, h } from "../dom.js";
import { words } from "../words/index.js";

/** @import { PageContext } from "../shell/shell.js" */

const KINDS = { running: "live", paused: "live", done: "good", error: "bad", cancelled: "", expired: "" };

/** @param {string} status */
export function isOpen(status) {
  return status === "running" || status === "paused";
}

/** @param {string} status @param {string} [code] */
export function statusTag(status, code) {
  const known = /** @type {keyof typeof KINDS} */ (status);
  const reason = code && h("div", { class: "quiet-text" }, code.replaceAll("_", " "));
  return h("div", {}, h("span", { class: `tag ${KINDS[known] ?? ""}` }, words.turns.states[known] ?? status), reason);
}

/** @param {any} turn @param {PageContext} context @param {() => void} reload */
export function cancelButton(turn, { client }, reload) {
  const cancel = async () => {
    const text = h("p", {}, words.turns.cancelText);
    const done = await askInDialog(words.turns.cancelTitle, [text], {
      action: words.turns.cancelAction,
      isDangerous: true,
      onAction: () => client.bridges.cancel(turn.bridgeId),
    });
    if (!done) return;
    announce(words.turns.cancelled);
    reload();
  };
  const label = words.turns.cancelOne(turn.userId);
  const key = `cancel ${turn.bridgeId}`;
  const button = h("button", { type: "button", class: "link", "aria-label": label, onclick: cancel }, words.cancel);
  button.dataset.key = key;
  return button;
}
