/** A form that a person may read, but not change. */

const TEXTS = new Set(["text", "search", "url", "tel", "email", "number", "date"]);

/**
 * Let nothing in a form be changed, and take its buttons away. Texts can still be reached, scrolled and copied.
 *
 * @param {HTMLElement} form
 */
export function makeReadOnly(form) {
  for (const control of form.querySelectorAll("textarea")) control.readOnly = true;
  for (const control of form.querySelectorAll("select")) control.disabled = true;
  for (const control of form.querySelectorAll("input")) {
    if (TEXTS.has(control.type)) control.readOnly = true;
    else control.disabled = true;
  }
  for (const button of form.querySelectorAll("button")) button.remove();
}
