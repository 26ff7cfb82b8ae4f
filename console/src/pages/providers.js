/** Providers: the keys with which models are asked. */

import { announce, askInDialog, emptyView, field, h, showLoaded, table } from "../dom.js";
import { formatInstant } from "../format.js";
import { words } from "../words/index.js";

/** @import { PageContext } from "../shell/shell.js" */

const PROVIDERS = [
  { id: "anthropic", label: "Anthropic", authMode: "apiKey" },
  { id: "openai", label: "OpenAI", authMode: "apiKey" },
  { id: "openrouter", label: "OpenRouter", authMode: "apiKey" },
  { id: "gemini", label: "Google Gemini", authMode: "apiKey" },
  { id: "ollama", label: "Ollama", authMode: "baseUrl" },
  { id: "openai-compatible", label: words.providers.otherServer, authMode: "baseUrl" },
];

/** @param {string} id */
export function providerLabel(id) {
  return PROVIDERS.find((provider) => provider.id === id)?.label ?? id;
}

/**
 * @param {HTMLElement} target
 * @param {PageContext} context
 */
export function show(target, context) {
  const list = h("div");
  const load = () =>
    showLoaded(
      list,
      () => context.client.credentials.list(),
      (keys) => listView(keys, context, load),
    );
  const add = async () => (await askForKey(context)) && load();
  target.append(
    h(
      "header",
      { class: "page-head" },
      h("h1", {}, words.shell.pages.providers),
      h("button", { type: "button", class: "button primary", onclick: add }, words.providers.addKey),
    ),
    h("p", { class: "lead" }, words.providers.lead),
    list,
  );
  return load();
}

/**
 * @param {any[]} keys
 * @param {PageContext} context
 * @param {() => void} reload
 */
function listView(keys, context, reload) {
  if (!keys.length) return emptyView(words.providers.empty, words.providers.emptyText);
  const rows = keys.map((key) => {
    const result = h("span", { class: "result", role: "status" });
    return [
      h("div", {}, h("strong", {}, key.displayLabel), key.baseUrl && h("div", { class: "quiet-text" }, key.baseUrl)),
      providerLabel(key.providerId),
      key.keyFingerprintCurrent === false
        ? h("span", { class: "tag warn" }, words.providers.enterAgain)
        : words.providers.sealed,
      formatInstant(key.lastUsedAt),
      h("div", { class: "row-actions" }, result, ...keyActions(key, result, context, reload)),
    ];
  });
  const { name, provider, key, lastUsed, actions } = words.providers.columns;
  return table(words.providers.keys, [name, provider, key, lastUsed, actions], rows);
}

/**
 * @param {any} key
 * @param {HTMLElement} result
 * @param {PageContext} context
 * @param {() => void} reload
 */
function keyActions(key, result, { client }, reload) {
  const test = async () => {
    result.className = "result";
    result.textContent = words.providers.testing;
    const answer = await client.credentials
      .test(key.id)
      .catch((/** @type {Error} */ error) => ({ error: error.message }));
    result.className = answer.ok ? "result good" : "result bad";
    result.textContent = answer.ok ? words.providers.works(answer.modelCount) : answer.error;
  };
  const replace = async () => {
    const control = keyInput();
    const done = await askInDialog(
      words.providers.replaceTitle(key.displayLabel),
      [field(words.providers.newKey, control)],
      {
        action: words.providers.replace,
        onAction: (data) => client.credentials.update(key.id, { apiKey: String(data.get("apiKey")) }),
      },
    );
    if (done) announce(words.providers.replaced);
    if (done) reload();
  };
  const remove = async () => {
    const text = h("p", {}, words.providers.deleteText);
    const done = await askInDialog(words.providers.deleteTitle(key.displayLabel), [text], {
      action: words.remove,
      isDangerous: true,
      onAction: () => client.credentials.remove(key.id),
    });
    if (done) announce(words.providers.deleted);
    if (done) reload();
  };
  const button = (/** @type {string} */ text, /** @type {() => void} */ onclick) =>
    h("button", { type: "button", class: "link", "aria-label": `${text} ${key.displayLabel}`, onclick }, text);
  return [
    button(words.providers.test, test),
    key.authMode === "apiKey" && button(words.providers.replace, replace),
    button(words.remove, remove),
  ];
}

function keyInput(isRequired = true) {
  return h("input", { name: "apiKey", type: "password", autocomplete: "off", required: isRequired, spellcheck: false });
}

/** @param {PageContext} context */
async function askForKey({ client }) {
  const select = h("select", { name: "providerId" });
  select.append(...PROVIDERS.map(({ id, label }) => h("option", { value: id }, label)));
  const name = h("input", {
    name: "displayLabel",
    required: true,
    maxLength: 100,
    placeholder: words.providers.teamKey,
  });
  const address = h("input", { name: "baseUrl", type: "url", placeholder: "http://127.0.0.1:11434" });
  const key = keyInput();
  const fields = { key: field(words.providers.apiKey, key), address: field(words.providers.address, address) };
  const change = () => {
    const isAddress = PROVIDERS.find(({ id }) => id === select.value)?.authMode === "baseUrl";
    fields.address.hidden = !isAddress;
    address.required = isAddress;
    key.required = !isAddress;
  };
  select.addEventListener("change", change);
  change();
  const content = [
    field(words.providers.columns.provider, select),
    field(words.providers.columns.name, name),
    fields.address,
    fields.key,
  ];
  const done = await askInDialog(words.providers.addKey, content, {
    action: words.add,
    onAction: async (data) => {
      const authMode = /** @type {any} */ (PROVIDERS.find(({ id }) => id === select.value)).authMode;
      const given = Object.fromEntries([...data].filter(([, value]) => value));
      if (authMode === "apiKey") delete given.baseUrl;
      await client.credentials.create({ ...given, authMode });
    },
  });
  if (done) announce(words.providers.added);
  return done;
}
