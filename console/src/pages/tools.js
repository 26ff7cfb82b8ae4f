/** Tools: the endpoints of the tenant that the assistants may call. */

import { announce, askInDialog, emptyView, field, h, showLoaded, table } from "../dom.js";
import { readHeaderLines, readRegistration } from "../tool-registration.js";
import { words } from "../words/index.js";
import { showSecret } from "./secret.js";

/** @import { PageContext } from "../shell/shell.js" */

/** @param {HTMLElement} target @param {PageContext} context */
export function show(target, context) {
  const list = h("div");
  const load = () =>
    showLoaded(
      list,
      () => context.client.remoteTools.list({ signal: context.signal }),
      (tools) => listView(tools, context, load),
    );
  const register = async () => (await askForTool(context)) && load();
  target.append(
    h(
      "header",
      { class: "page-head" },
      h("h1", {}, words.shell.pages.tools),
      h("button", { type: "button", class: "button primary", onclick: register }, words.tools.register),
    ),
    h("p", { class: "lead" }, words.tools.lead),
    list,
  );
  return load();
}

/** @param {any[]} tools @param {PageContext} context @param {() => void} reload */
function listView(tools, context, reload) {
  if (!tools.length) return emptyView(words.tools.empty, words.tools.emptyText);
  const { name, endpoint, state, actions } = words.tools.columns;
  const rows = tools.map((tool) => [
    nameCell(tool),
    endpointCell(tool),
    stateTag(isEnabled(tool)),
    h("div", { class: "row-actions" }, ...actionsOf(tool, context, reload)),
  ]);
  return table(words.tools.tools, [name, endpoint, state, actions], rows);
}

/** @param {any} tool */
function isEnabled({ manifest }) {
  return manifest.enabled !== false;
}

/** @param {boolean} isOn */
function stateTag(isOn) {
  return h("span", { class: isOn ? "tag good" : "tag" }, isOn ? words.tools.enabled : words.tools.disabled);
}

/** @param {any} tool */
function nameCell({ manifest, source }) {
  const { sources, capabilities } = words.tools;
  const tags = h("div", { class: "tags" }, h("span", { class: "tag" }, sources[source] ?? source));
  if (manifest.capability) tags.append(h("span", { class: "tag" }, capabilities[manifest.capability]));
  const description = h("div", { class: "quiet-text" }, manifest.description);
  return h("div", { class: "tool-name" }, h("strong", {}, manifest.name), description, tags);
}

/** @param {any} tool */
function endpointCell({ endpoint, headerNames, scopes }) {
  return h(
    "div",
    { class: "tool-endpoint" },
    endpoint,
    headerNames.length > 0 && h("div", { class: "quiet-text" }, words.tools.headers(headerNames.join(", "))),
    scopes.length > 0 && h("div", { class: "quiet-text" }, words.tools.scopes(scopes.join(", "))),
  );
}

/** @param {any} tool @param {PageContext} context @param {() => void} reload */
function actionsOf(tool, { client }, reload) {
  if (tool.source === "deployment") return []; // it belongs to the deployment's settings
  const { name } = tool.manifest;
  const isOn = isEnabled(tool);
  const toggle = async () => {
    await client.remoteTools.update(name, { enabled: !isOn });
    announce(isOn ? words.tools.disabledNow(name) : words.tools.enabledNow(name));
    reload();
  };
  const rotate = async () => {
    /** @type {any} */
    let answer;
    await askInDialog(words.tools.rotateTitle(name), [h("p", {}, words.tools.rotateText)], {
      action: words.tools.newSecret,
      onAction: async () => {
        answer = await client.remoteTools.update(name, { rotateSigningSecret: true });
      },
    });
    if (answer?.signingSecret) await showSecret(answer.signingSecret);
  };
  const remove = async () => {
    const done = await askInDialog(words.tools.deleteTitle(name), [h("p", {}, words.tools.deleteText)], {
      action: words.remove,
      isDangerous: true,
      onAction: () => client.remoteTools.remove(name),
    });
    if (done) announce(words.tools.deleted(name));
    if (done) reload();
  };
  return [
    actionButton(isOn ? words.tools.disable : words.tools.enable, name, toggle),
    tool.source === "remote" && actionButton(words.tools.newSecret, name, rotate),
    actionButton(words.remove, name, remove),
  ];
}

/**
 * A button of a row. What is refused is told in the corner.
 *
 * @param {string} text
 * @param {string} of
 * @param {() => Promise<void>} act
 */
export function actionButton(text, of, act) {
  const onclick = () => act().catch((/** @type {Error} */ error) => announce(error.message));
  return h("button", { type: "button", class: "link", "aria-label": `${text} ${of}`, onclick }, text);
}

/** @param {PageContext} context */
async function askForTool({ client }) {
  const { manifest, manifestHint, endpoint, endpointHint, header, headersHint, replace } = words.tools;
  const area = (/** @type {string} */ name, /** @type {number} */ rows, /** @type {boolean} */ required) =>
    h("textarea", { name, rows, required, spellcheck: false, class: "code", autocomplete: "off" });
  const content = [
    field(manifest, area("manifest", 10, true), manifestHint),
    field(endpoint, h("input", { name: "endpoint", type: "url", placeholder: "https://" }), endpointHint),
    field(header, area("headers", 2, false), headersHint),
    h("label", { class: "check" }, h("input", { name: "replace", type: "checkbox" }), replace),
  ];
  /** @type {any} */
  let answer;
  await askInDialog(words.tools.register, content, {
    action: words.tools.register,
    onAction: async (data) => {
      const text = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
      const headers = readHeaderLines(text("headers"));
      const tool = readRegistration(text("manifest"), text("endpoint"), headers, data.has("replace"));
      answer = await client.remoteTools.register(tool);
    },
  });
  if (!answer) return false;
  if (answer.signingSecret) await showSecret(answer.signingSecret);
  announce(words.tools.registered(answer.tool.manifest.name));
  return true;
}
