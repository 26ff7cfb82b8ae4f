/** Webhooks: the addresses that are told about turns and content, and what was delivered to them. */

import { announce, askInDialog, emptyView, field, h, number, showLoaded, table } from "../dom.js";
import { formatCount, formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { showSecret } from "./secret.js";
import { actionButton } from "./tools.js";

/** @import { PageContext } from "../shell/shell.js" */

const TURN_EVENTS = ["toolRequest", "approvalRequest", "turnEnd"];
const CONTENT_EVENTS = [
  "content.documentCreated",
  "content.documentChanged",
  "content.documentPublished",
  "content.documentUnpublished",
  "content.documentDeleted",
  "content.modelChanged",
  "content.changeSetOpened",
  "content.changeSetMerged",
  "content.changeSetRejected",
  "forms.submissionReceived",
  "forms.submissionDecided",
];

/** @param {HTMLElement} target @param {PageContext} context @param {string} id */
export function show(target, context, id) {
  return id ? showDeliveries(target, context, id) : showList(target, context);
}

/** @param {HTMLElement} target @param {PageContext} context */
function showList(target, context) {
  const list = h("div");
  const load = () =>
    showLoaded(
      list,
      () => context.client.webhooks.list({ signal: context.signal }),
      (webhooks) => listView(webhooks, context, load),
    );
  const add = async () => (await askForWebhook(context)) && load();
  target.append(
    h(
      "header",
      { class: "page-head" },
      h("h1", {}, words.shell.pages.webhooks),
      h("button", { type: "button", class: "button primary", onclick: add }, words.webhooks.add),
    ),
    h("p", { class: "lead" }, words.webhooks.lead),
    list,
  );
  return load();
}

/** @param {any[]} webhooks @param {PageContext} context @param {() => void} reload */
function listView(webhooks, context, reload) {
  if (!webhooks.length) return emptyView(words.webhooks.empty, words.webhooks.emptyText);
  const { address, events, state, actions } = words.webhooks.columns;
  const rows = webhooks.map((webhook) => [
    h("div", { class: "tool-endpoint" }, h("strong", {}, webhook.url)),
    eventTags(webhook),
    h(
      "span",
      { class: webhook.enabled ? "tag good" : "tag" },
      webhook.enabled ? words.webhooks.enabled : words.webhooks.disabled,
    ),
    h("div", { class: "row-actions" }, ...actionsOf(webhook, context, reload)),
  ]);
  return table(words.webhooks.webhooks, [address, events, state, actions], rows);
}

/** @param {any} webhook */
function eventTags({ events, mayAnswer }) {
  const tags = events.map((/** @type {string} */ event) => h("span", { class: "tag" }, event));
  if (mayAnswer) tags.push(h("span", { class: "tag warn" }, words.webhooks.answers));
  return h("div", { class: "tags" }, ...tags);
}

/** @param {any} webhook @param {PageContext} context @param {() => void} reload */
function actionsOf({ id, url, enabled }, { client }, reload) {
  const toggle = async () => {
    await client.webhooks.update(id, { enabled: !enabled });
    reload();
  };
  const remove = async () => {
    const content = [h("p", { class: "tool-endpoint" }, url), h("p", {}, words.webhooks.deleteText)];
    const done = await askInDialog(words.webhooks.deleteTitle, content, {
      action: words.remove,
      isDangerous: true,
      onAction: () => client.webhooks.remove(id),
    });
    if (done) announce(words.webhooks.deleted);
    if (done) reload();
  };
  const label = `${words.webhooks.deliveries} ${url}`;
  return [
    h(
      "a",
      { class: "link", href: `#/webhooks/${encodeURIComponent(id)}`, "aria-label": label },
      words.webhooks.deliveries,
    ),
    actionButton(enabled ? words.webhooks.disable : words.webhooks.enable, url, toggle),
    actionButton(words.remove, url, remove),
  ];
}

/** @param {PageContext} context */
async function askForWebhook({ client }) {
  const { address, events, mayAnswer, mayAnswerHint, add } = words.webhooks;
  const boxes = [...TURN_EVENTS, ...CONTENT_EVENTS].map((event) =>
    h(
      "label",
      { class: "check" },
      h("input", { type: "checkbox", name: "events", value: event, checked: TURN_EVENTS.includes(event) }),
      event,
    ),
  );
  const content = [
    field(address, h("input", { name: "url", type: "url", required: true, placeholder: "https://" })),
    h("fieldset", {}, h("legend", {}, events), ...boxes),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "mayAnswer" }), mayAnswer),
    h("small", { class: "quiet-text" }, mayAnswerHint),
  ];
  /** @type {any} */
  let answer;
  await askInDialog(add, content, {
    action: words.add,
    onAction: async (data) => {
      const webhook = { url: String(data.get("url")), events: data.getAll("events").map(String) };
      answer = await client.webhooks.create({ ...webhook, mayAnswer: data.has("mayAnswer") });
    },
  });
  if (!answer) return false;
  await showSecret(answer.signingSecret);
  announce(words.webhooks.added);
  return true;
}

/** @param {HTMLElement} target @param {PageContext} context @param {string} id */
function showDeliveries(target, context, id) {
  const body = h("div");
  target.append(
    h("a", { class: "back", href: "#/webhooks" }, words.webhooks.all),
    h("header", { class: "page-head" }, h("h1", {}, words.webhooks.deliveries)),
    body,
  );
  const { client, signal } = context;
  const load = () =>
    showLoaded(
      body,
      () => Promise.all([client.webhooks.list({ signal }), client.webhooks.deliveries(id, { signal })]),
      ([webhooks, deliveries]) => {
        const webhook = webhooks.find((/** @type {any} */ each) => each.id === id);
        return webhook ? deliveriesView(webhook, deliveries, context, load) : h("p", {}, words.webhooks.unknown);
      },
    );
  return load();
}

/** @param {any} webhook @param {any[]} deliveries @param {PageContext} context @param {() => void} reload */
function deliveriesView({ id, url }, deliveries, { client }, reload) {
  if (!deliveries.length) return emptyView(words.webhooks.noDeliveries, words.webhooks.noDeliveriesText);
  const { when, event, state, attempts, answer, actions } = words.webhooks.delivery;
  const rows = deliveries.map((delivery) => {
    const again = async () => {
      await client.webhooks.redeliver(id, delivery.id);
      announce(words.webhooks.redelivered);
      reload();
    };
    const { bridgeId } = delivery;
    const at = formatInstant(delivery.at);
    return [
      bridgeId ? h("a", { href: `#/turns/${encodeURIComponent(bridgeId)}` }, at) : at,
      delivery.event,
      deliveryTag(delivery.state),
      formatCount(delivery.attempts),
      [delivery.status, delivery.error].filter(Boolean).join(" · "),
      h("div", { class: "row-actions" }, actionButton(words.webhooks.redeliver, delivery.id, again)),
    ];
  });
  return table(words.webhooks.deliveriesOf(url), [when, event, state, number(attempts), answer, actions], rows);
}

/** @param {string} state */
function deliveryTag(state) {
  const kind = /** @type {Record<string, string>} */ ({
    delivered: "tag good",
    failed: "tag bad",
    waiting: "tag live",
  });
  return h("span", { class: kind[state] ?? "tag" }, words.webhooks.states[state] ?? state);
}
