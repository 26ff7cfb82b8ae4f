/** Keys of the Conversation API: with them, programs talk to the studio's assistant in this project. */

import { announce, askInDialog, emptyView, field, h, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { showSecret } from "../pages/secret.js";
import { actionButton } from "../pages/tools.js";
import { words } from "../words/index.js";
import { describeRules, listKeysOfSpace, parseKeyRules } from "./key-rules.js";

/** @import { SpaceView } from "../content/space-page.js" */

const ROLES = /** @type {const} */ (["viewer", "editor", "admin"]);

/** @param {HTMLElement} target @param {SpaceView} view */
export function showConversationKeys(target, view) {
  const { client, signal } = view.context;
  const load = () =>
    showLoaded(
      target,
      () => client.apiKeys.list({ signal }),
      (keys) => keysView(listKeysOfSpace(keys, view.space), view, load),
    );
  return load();
}

/** @param {any[]} keys @param {SpaceView} view @param {() => void} reload */
function keysView(keys, view, reload) {
  const { create, none, noneText, caption, columns } = words.studio.keys;
  const ask = async () => {
    if (await askForKey(view)) reload();
  };
  const button = h("button", { type: "button", class: "button primary", onclick: ask }, create);
  const rows = keys.map((key) => keyRow(key, view, reload));
  const heads = [columns.key, columns.role, columns.limits, columns.used, columns.actions];
  return [
    h("div", { class: "content-tools" }, button),
    rows.length ? table(caption, heads, rows) : emptyView(none, noneText),
  ];
}

/** @param {any} key @param {SpaceView} view @param {() => void} reload */
function keyRow(key, view, reload) {
  const { roles, limits, revoked, never } = words.studio.keys;
  const { id, label, prefix, conversation: rules, revokedAt, lastUsedAt } = key;
  const name = h("div", {}, h("bdi", {}, label), h("div", { class: "quiet-text" }, h("code", {}, `${prefix}…`)));
  const narrowed = describeRules(rules).map((text) => h("span", { class: "tag" }, h("bdi", {}, text)));
  return [
    name,
    h("div", { class: "tags" }, roles[/** @type {keyof typeof roles} */ (rules.role)] ?? rules.role, ...narrowed),
    limits(formatCount(rules.messagesPerMinute), formatCount(rules.messagesPerMonth)),
    lastUsedAt ? formatInstant(lastUsedAt) : never,
    revokedAt
      ? h("span", { class: "tag bad" }, revoked)
      : h("div", { class: "row-actions" }, ...actionsOf(id, label, view, reload)),
  ];
}

/** @param {string} id @param {string} label @param {SpaceView} view @param {() => void} reload */
function actionsOf(id, label, { context }, reload) {
  const { rotate, rotateTitle, rotateText, revoke, revokeTitle, revokeText, wasRevoked, text } = words.studio.keys;
  const { apiKeys } = context.client;
  const renew = async () => {
    /** @type {any} */
    let answer;
    await askInDialog(rotateTitle(label), [h("p", {}, rotateText)], {
      action: rotate,
      onAction: async () => {
        answer = await apiKeys.rotate(id);
      },
    });
    if (!answer) return;
    await showSecret(answer.key, text);
    reload();
  };
  const end = async () => {
    const options = { action: revoke, isDangerous: true, onAction: () => apiKeys.remove(id) };
    if (!(await askInDialog(revokeTitle(label), [h("p", {}, revokeText)], options))) return;
    announce(wasRevoked);
    reload();
  };
  return [actionButton(rotate, label, renew), actionButton(revoke, label, end)];
}

/** @param {SpaceView} view @returns {Promise<boolean>} */
async function askForKey({ context, space, locales }) {
  const own = words.studio.keys;
  const { models, modelsHint, locales: languages, localesHint } = words.studio.members;
  const role = h("select", { name: "role" }, ...ROLES.map((each) => h("option", { value: each }, own.roles[each])));
  role.value = "editor";
  const input = (/** @type {string} */ name, /** @type {Record<string, any>} */ members = {}) =>
    h("input", { name, autocomplete: "off", spellcheck: false, ...members });
  const count = (/** @type {string} */ name, /** @type {number} */ value, /** @type {number} */ max) =>
    input(name, { type: "number", min: 1, max, step: 1, value, required: true });
  const content = [
    field(own.label, input("label", { required: true, maxLength: 200 }), own.labelHint),
    field(own.role, role, own.roleHint),
    field(models, input("models"), modelsHint),
    field(languages, input("locales"), `${localesHint} ${locales.join(", ")}.`),
    field(own.instructions, h("textarea", { name: "instructions", rows: 2, maxLength: 2_000 }), own.instructionsHint),
    field(own.perMinute, count("perMinute", 10, 60)),
    field(own.perMonth, count("perMonth", 1_000, 10_000_000)),
  ];
  /** @type {any} */
  let answer;
  await askInDialog(own.create, content, {
    action: own.create,
    onAction: async (data) => {
      const label = String(data.get("label")).trim();
      answer = await context.client.apiKeys.create({ label, conversation: parseKeyRules(data, space) });
    },
  });
  if (!answer) return false;
  await showSecret(answer.key, own.text);
  return true;
}
