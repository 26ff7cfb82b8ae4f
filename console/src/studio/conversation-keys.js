/** Keys of the Conversation API: with them, programs talk to the studio's assistant in this project. */

import { announce, askInDialog, emptyView, field, h, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { showSecret } from "../pages/secret.js";
import { actionButton } from "../pages/tools.js";
import { words } from "../words/index.js";
import { describeRules, listKeysOfSpace, parseKeyRules } from "./key-rules.js";
import { useMeter, useWarning } from "./plan-usage.js";

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
    const answer = await askForKey(view);
    if (!answer) return;
    await showSecret(answer.key, words.studio.keys.text);
    reload();
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
  const { label, prefix, conversation: rules, revokedAt, lastUsedAt } = key;
  const name = h("div", {}, h("bdi", {}, label), h("div", { class: "quiet-text" }, h("code", {}, `${prefix}…`)));
  const narrowed = describeRules(rules).map((text) => h("span", { class: "tag" }, h("bdi", {}, text)));
  return [
    name,
    h("div", { class: "tags" }, roles[/** @type {keyof typeof roles} */ (rules.role)] ?? rules.role, ...narrowed),
    h(
      "div",
      {},
      limits(formatCount(rules.messagesPerMinute), formatCount(rules.messagesPerMonth)),
      ...(revokedAt ? [] : monthOf(key)),
    ),
    lastUsedAt ? formatInstant(lastUsedAt) : never,
    revokedAt
      ? h("span", { class: "tag bad" }, revoked)
      : h("div", { class: "row-actions" }, ...actionsOf(key, view, reload)),
  ];
}

/** What a key has used of its messages of the month. @param {any} key */
function monthOf({ messagesThisMonth: used, renewsAt, conversation: { messagesPerMonth: included } }) {
  const { sent, renews, limitReached } = words.studio.keys;
  if (used === undefined || used === null) return []; // an earlier release does not say it
  const when = formatInstant(renewsAt);
  return [
    h("div", { class: "quiet-text" }, `${sent(used, formatCount(used))} ${renews(when)}`),
    h("div", {}, useMeter(limitReached, { used, included })),
    useWarning({ used, included }, when),
  ];
}

/** @param {any} key @param {SpaceView} view @param {() => void} reload */
function actionsOf(key, view, reload) {
  const { id, label } = key;
  const { change, saved, rotate, rotateTitle, rotateText, revoke, revokeTitle, revokeText, wasRevoked, text } =
    words.studio.keys;
  const { apiKeys } = view.context.client;
  const edit = async () => {
    if (!(await askForKey(view, key))) return;
    announce(saved);
    reload();
  };
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
  return [actionButton(change, label, edit), actionButton(rotate, label, renew), actionButton(revoke, label, end)];
}

/**
 * Ask for a new key, or for other rules of one, and return what the service has answered.
 *
 * @param {SpaceView} view
 * @param {any} [key]
 */
async function askForKey({ context, space, locales }, key) {
  const own = words.studio.keys;
  const { models, modelsHint, locales: languages, localesHint } = words.studio.members;
  const rules = key?.conversation;
  const role = h("select", { name: "role" }, ...ROLES.map((each) => h("option", { value: each }, own.roles[each])));
  role.value = rules?.role ?? "editor";
  const input = (/** @type {string} */ name, /** @type {Record<string, any>} */ members = {}) =>
    h("input", { name, autocomplete: "off", spellcheck: false, ...members });
  const list = (/** @type {string} */ name) => input(name, { value: (rules?.[name] ?? []).join(", ") });
  const count = (/** @type {string} */ name, /** @type {number} */ value, /** @type {number} */ max) =>
    input(name, { type: "number", min: 1, max, step: 1, value, required: true });
  const instructions = h("textarea", { name: "instructions", rows: 2, maxLength: 2_000 });
  instructions.value = rules?.instructions ?? "";
  const content = [
    field(own.label, input("label", { required: true, maxLength: 200, value: key?.label ?? "" }), own.labelHint),
    field(own.role, role, own.roleHint),
    field(models, list("models"), modelsHint),
    field(languages, list("locales"), `${localesHint} ${locales.join(", ")}.`),
    field(own.tools, list("tools"), own.toolsHint),
    field(own.languageModel, input("modelId", { value: rules?.modelId ?? "" }), own.languageModelHint),
    field(own.instructions, instructions, own.instructionsHint),
    field(own.perMinute, count("perMinute", rules?.messagesPerMinute ?? 10, 60)),
    field(own.perMonth, count("perMonth", rules?.messagesPerMonth ?? 1_000, 10_000_000)),
  ];
  /** @type {any} */
  let answer;
  await askInDialog(key ? own.changeTitle(key.label) : own.create, content, {
    action: key ? words.content.document.save : own.create,
    onAction: async (data) => {
      const label = String(data.get("label")).trim();
      const { apiKeys } = context.client;
      answer = key
        ? await apiKeys.update(key.id, { label, conversation: parseKeyRules(data) })
        : await apiKeys.create({ label, conversation: { project: space, ...parseKeyRules(data) } });
    },
  });
  return answer;
}
