/** A secret that is shown once. */

import { announce, askInDialog, field, h } from "../dom.js";
import { words } from "../words/index.js";

/**
 * @param {string} secret
 * @param {{title: string, text: string, label: string}} [own] What it is; without it, a signing secret.
 */
export async function showSecret(secret, own = words.secret) {
  const control = h("input", { readOnly: true, value: secret, class: "code", spellcheck: false, autocomplete: "off" });
  const copy = async () => {
    control.select();
    await navigator.clipboard?.writeText(secret).then(
      () => announce(words.secret.copied),
      () => {}, // the browser allows no clipboard; it is selected
    );
  };
  const button = h("button", { type: "button", class: "button", onclick: copy }, words.secret.copy);
  const content = [h("p", {}, own.text), field(own.label, control), button];
  await askInDialog(own.title, content, { action: words.secret.done, onAction: () => {} });
}
