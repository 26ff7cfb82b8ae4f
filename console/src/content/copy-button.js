/** A button that copies a text. Where the browser allows no clipboard, the text is shown to be copied by hand. */

import { announce, askInDialog, field, h } from "../dom.js";
import { words } from "../words/index.js";

/**
 * @param {string} text
 * @param {string} of What is copied.
 * @param {() => Promise<string>} read
 */
export function copyButton(text, of, read) {
  const copy = async () => {
    try {
      await copyText(await read(), of);
    } catch (error) {
      announce(error instanceof Error ? error.message : String(error));
    }
  };
  return h("button", { type: "button", class: "link", "aria-label": `${text}: ${of}`, onclick: copy }, text);
}

/** @param {string} value @param {string} of */
async function copyText(value, of) {
  try {
    await navigator.clipboard.writeText(value);
    announce(words.secret.copied);
  } catch {
    const control = h("input", { value, readOnly: true, class: "code", spellcheck: false });
    control.addEventListener("focus", () => control.select());
    const options = { action: words.close, onAction: () => {} };
    await askInDialog(of, [field(words.media.copyByHand, control)], options);
  }
}
