/** The HTML of a form for a page of the site: its fields, its captcha, and a script that says what became of it. */

/** @typedef {{service: "turnstile" | "hcaptcha" | "recaptcha", siteKey: string}} SiteCaptcha */
/**
 * @typedef {object} FormSnippet
 * @property {string} address Where it is sent.
 * @property {string} [locale] The language of the page.
 * @property {import("./form-rules.js").FormState} state
 * @property {Record<string, any>} fields The definitions of the model's fields.
 * @property {SiteCaptcha | null} captcha
 * @property {{trap: string, send: string, notSent: string}} texts
 */

/** The type of an input, by that of the field; any other is a text. */
export const INPUT_TYPES = /** @type {Record<string, string>} */ ({
  boolean: "checkbox",
  email: "email",
  url: "url",
  phone: "tel",
  color: "color",
  number: "number",
  integer: "number",
  decimal: "number",
  percent: "number",
  rating: "number",
  date: "date",
  datetime: "datetime-local",
});
/** The class of each service’s element, its script, and the object that this defines. */
const CAPTCHAS = {
  turnstile: {
    name: "cf-turnstile",
    script: "https://challenges.cloudflare.com/turnstile/v0/api.js",
    own: "turnstile",
  },
  hcaptcha: { name: "h-captcha", script: "https://js.hcaptcha.com/1/api.js", own: "hcaptcha" },
  recaptcha: { name: "g-recaptcha", script: "https://www.google.com/recaptcha/api.js", own: "grecaptcha" },
};

/**
 * Return the HTML of a form.
 *
 * @param {FormSnippet} snippet
 */
export function makeFormSnippet({ address, locale, state, fields, captcha, texts }) {
  const action = locale ? `${address}?locale=${encodeURIComponent(locale)}` : address;
  const shown = state.fields.filter(({ isShown }) => isShown);
  const solved = state.captcha && captcha ? captcha : null;
  const lines = [
    `<form action="${escapeHtml(action)}" method="post">`,
    ...shown.map(
      ({ name, isRequired }) =>
        `  <p><label>${escapeHtml(name)} ${controlOf(name, fields[name], isRequired)}</label></p>`,
    ),
    ...(state.honeypot ? [trapOf(state.honeypot, texts.trap)] : []),
    ...(solved ? [captchaOf(solved)] : []),
    `  <p><button>${escapeHtml(texts.send)}</button></p>`,
    `  <p role="status"></p>`,
    `</form>`,
    ...scriptOf(texts.notSent, solved && CAPTCHAS[solved.service].own),
  ];
  return `${lines.join("\n")}\n`;
}

/** @param {string} name @param {any} definition @param {boolean} isRequired */
function controlOf(name, definition, isRequired) {
  const { type, options, items, min, max } = definition;
  const own = ` name="${escapeHtml(name)}"${isRequired ? " required" : ""}`;
  const isText = type === "text";
  if (isText) return `<textarea${own} rows="5"${lengthOf(definition)}></textarea>`;
  const choices = type === "select" ? options : (items?.options ?? undefined);
  if (choices?.length) {
    const none = type === "select" && !isRequired ? "<option></option>" : "";
    const listed = choices.map((/** @type {string} */ text) => `<option>${escapeHtml(text)}</option>`).join("");
    return `<select${own}${type === "array" ? " multiple" : ""}>${none}${listed}</select>`;
  }
  const kind = INPUT_TYPES[type] ?? "text";
  if (kind !== "number") return `<input type="${kind}"${own}${kind === "text" ? lengthOf(definition) : ""}>`;
  const step = type === "integer" || type === "rating" ? "1" : "any";
  return `<input type="number"${own} step="${step}"${attribute("min", min)}${attribute("max", max)}>`;
}

/** The characters that a text may have. @param {any} definition */
function lengthOf({ type, min, max }) {
  return type === "array" ? "" : attribute("minlength", min) + attribute("maxlength", max);
}

/** @param {string} name @param {any} value */
function attribute(name, value) {
  return typeof value === "number" ? ` ${name}="${value}"` : "";
}

/** @param {string} name @param {string} text */
function trapOf(name, text) {
  const input = `<input name="${escapeHtml(name)}" tabindex="-1" autocomplete="off">`;
  return `  <p hidden><label>${escapeHtml(text)} ${input}</label></p>`;
}

/** @param {SiteCaptcha} captcha */
function captchaOf({ service, siteKey }) {
  const { name, script } = CAPTCHAS[service];
  const place = `  <div class="${name}" data-sitekey="${escapeHtml(siteKey)}"></div>`;
  return `${place}\n  <script src="${script}" async defer></script>`;
}

/**
 * The script sends what an HTML form sends, which needs no permission of the service's for the page to be stored. Fields may be
 * called like members of a form: none of these is used by its name.
 *
 * @param {string} notSent
 * @param {string | null} captcha The object of its service: a solution is good once.
 */
function scriptOf(notSent, captcha) {
  const text = JSON.stringify(notSent).replaceAll("<", "\\u003c");
  return `<script>
{
  const form = document.currentScript.previousElementSibling;
  const [button, status] = form.querySelectorAll("button, [role=status]");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const body = new URLSearchParams(new FormData(form));
      const answer = await fetch(form.getAttribute("action"), { method: "POST", body });
      const { message, error } = await answer.json();
      status.textContent = answer.ok ? message : error;
      if (answer.ok) HTMLFormElement.prototype.reset.call(form);
    } catch {
      status.textContent = ${text};
    }
    button.disabled = false;${captcha ? `\n    window.${captcha}?.reset();` : ""}
  });
}
</script>`.split("\n");
}

/** @param {string} text */
function escapeHtml(text) {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
