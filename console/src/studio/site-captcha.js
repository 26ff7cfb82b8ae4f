/** The captcha of a site, which all forms that ask for one have: which it is, and how it is set up. */

import { announce, askInDialog, field, h, problemView } from "../dom.js";
import { words } from "../words/index.js";

/** @import { SpaceView } from "../content/space-page.js" */
/** @import { SiteCaptcha } from "./form-snippet.js" */

const SERVICES = /** @type {const} */ (["turnstile", "hcaptcha", "recaptcha"]);

/**
 * Make the line that says which captcha the site has, with what can be done about it.
 *
 * @param {SpaceView} view
 * @param {(captcha: SiteCaptcha | null) => void} onChange Also called when it is known first.
 */
export function siteCaptcha({ content, context }, onChange) {
  const { none, is, names, setUp, change, remove } = words.studio.forms.siteCaptcha;
  const element = h("div", { class: "site-captcha" });
  const show = (/** @type {SiteCaptcha | null} */ captcha) => {
    const button = (/** @type {string} */ text, /** @type {() => Promise<SiteCaptcha | null | undefined>} */ ask) => {
      const onclick = async () => {
        const answer = await ask();
        if (answer === undefined) return;
        show(answer);
        element.querySelector("button")?.focus();
      };
      return h("button", { type: "button", class: "link", onclick }, text);
    };
    const told = captcha ? is(names[captcha.service], captcha.siteKey) : none;
    const edit = button(captcha ? change : setUp, () => askForCaptcha(content, captcha));
    const end = captcha && button(remove, () => askToRemove(content));
    element.replaceChildren(
      h("p", { class: "quiet-text" }, told),
      h("div", { class: "row-actions" }, edit, ...(end ? [end] : [])),
    );
    onChange(captcha);
  };
  content.captcha
    .get({ signal: context.signal })
    .then(show, (error) => context.signal.aborted || element.replaceChildren(problemView(error)));
  return element;
}

/** @param {SpaceView["content"]} content @param {SiteCaptcha | null} captcha */
async function askForCaptcha(content, captcha) {
  const { setUp, change, service, names, siteKey, siteKeyHint, secret, secretHint, secretKept, privacy, save, saved } =
    words.studio.forms.siteCaptcha;
  const choice = h("select", { name: "service" }, ...SERVICES.map((each) => h("option", { value: each }, names[each])));
  choice.value = captcha?.service ?? "turnstile";
  const own = { autocomplete: "off", spellcheck: false };
  const key = h("input", { name: "siteKey", required: true, maxLength: 200, value: captcha?.siteKey ?? "", ...own });
  const sealed = h("input", { name: "secret", type: "password", maxLength: 500, ...own, autocomplete: "new-password" });
  const fields = [
    field(service, choice),
    field(siteKey, key, siteKeyHint),
    field(secret, sealed, captcha ? `${secretHint} ${secretKept}` : secretHint),
    h("p", { class: "quiet-text" }, privacy),
  ];
  /** @type {SiteCaptcha | undefined} */
  let stored;
  await askInDialog(captcha ? change : setUp, fields, {
    action: save,
    onAction: async (data) => {
      const text = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
      const wanted = { service: /** @type {SiteCaptcha["service"]} */ (text("service")), siteKey: text("siteKey") };
      stored = await content.captcha.put({ ...wanted, ...(text("secret") && { secret: text("secret") }) });
    },
  });
  if (stored) announce(saved);
  return stored;
}

/** @param {SpaceView["content"]} content @returns {Promise<null | undefined>} Null where there is none any more. */
async function askToRemove(content) {
  const { removeTitle, removeText, remove, removed } = words.studio.forms.siteCaptcha;
  const options = { action: remove, isDangerous: true, onAction: () => content.captcha.remove() };
  if (!(await askInDialog(removeTitle, [h("p", {}, removeText)], options))) return undefined;
  announce(removed);
  return null;
}
