/** Providers: the keys with which models are asked. */

import { announce, askInDialog, emptyView, field, h, showLoaded, table } from "../dom.js";
import { formatInstant } from "../format.js";

/** @import { PageContext } from "../shell/shell.js" */

const PROVIDERS = [
  { id: "anthropic", label: "Anthropic", authMode: "apiKey" },
  { id: "openai", label: "OpenAI", authMode: "apiKey" },
  { id: "openrouter", label: "OpenRouter", authMode: "apiKey" },
  { id: "ollama", label: "Ollama", authMode: "baseUrl" },
  { id: "openai-compatible", label: "Another server (chat completions)", authMode: "baseUrl" },
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
      h("h1", {}, "Providers"),
      h("button", { type: "button", class: "button primary", onclick: add }, "Add a key"),
    ),
    h("p", { class: "lead" }, "Keys are sealed when they arrive. Nobody can read one again; it can only be replaced."),
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
  if (!keys.length)
    return emptyView("No keys yet", "Add the key of a provider, and then choose a model for each scope.");
  const rows = keys.map((key) => {
    const result = h("span", { class: "result", role: "status" });
    return [
      h("div", {}, h("strong", {}, key.displayLabel), key.baseUrl && h("div", { class: "quiet-text" }, key.baseUrl)),
      providerLabel(key.providerId),
      key.keyFingerprintCurrent === false ? h("span", { class: "tag warn" }, "Enter it again") : "Sealed",
      formatInstant(key.lastUsedAt),
      h("div", { class: "row-actions" }, result, ...keyActions(key, result, context, reload)),
    ];
  });
  return table("Keys", ["Name", "Provider", "Key", "Last used", "Actions"], rows);
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
    result.textContent = "Testing …";
    const answer = await client.credentials
      .test(key.id)
      .catch((/** @type {Error} */ error) => ({ error: error.message }));
    result.className = answer.ok ? "result good" : "result bad";
    const count =
      answer.modelCount === undefined ? "" : `: ${answer.modelCount} ${answer.modelCount === 1 ? "model" : "models"}`;
    result.textContent = answer.ok ? `Works${count}` : answer.error;
  };
  const replace = async () => {
    const control = keyInput();
    const done = await askInDialog(`Replace the key of ${key.displayLabel}`, [field("New key", control)], {
      action: "Replace",
      onAction: (data) => client.credentials.update(key.id, { apiKey: String(data.get("apiKey")) }),
    });
    if (done) announce("The key was replaced.");
    if (done) reload();
  };
  const remove = async () => {
    const words = h("p", {}, "Conversations that use it keep their messages and need another model to go on.");
    const done = await askInDialog(`Delete ${key.displayLabel}?`, [words], {
      action: "Delete",
      isDangerous: true,
      onAction: () => client.credentials.remove(key.id),
    });
    if (done) reload();
  };
  const button = (/** @type {string} */ words, /** @type {() => void} */ onclick) =>
    h("button", { type: "button", class: "link", "aria-label": `${words} ${key.displayLabel}`, onclick }, words);
  return [button("Test", test), key.authMode === "apiKey" && button("Replace", replace), button("Delete", remove)];
}

function keyInput(isRequired = true) {
  return h("input", { name: "apiKey", type: "password", autocomplete: "off", required: isRequired, spellcheck: false });
}

/** @param {PageContext} context */
async function askForKey({ client }) {
  const select = h("select", { name: "providerId" });
  select.append(...PROVIDERS.map(({ id, label }) => h("option", { value: id }, label)));
  const name = h("input", { name: "displayLabel", required: true, maxLength: 100, placeholder: "Team key" });
  const address = h("input", { name: "baseUrl", type: "url", placeholder: "http://127.0.0.1:11434" });
  const key = keyInput();
  const fields = { key: field("API key", key), address: field("Address", address) };
  const change = () => {
    const isAddress = PROVIDERS.find(({ id }) => id === select.value)?.authMode === "baseUrl";
    fields.address.hidden = !isAddress;
    address.required = isAddress;
    key.required = !isAddress;
  };
  select.addEventListener("change", change);
  change();
  const content = [field("Provider", select), field("Name", name), fields.address, fields.key];
  const done = await askInDialog("Add a key", content, {
    action: "Add",
    onAction: async (data) => {
      const authMode = /** @type {any} */ (PROVIDERS.find(({ id }) => id === select.value)).authMode;
      const given = Object.fromEntries([...data].filter(([, value]) => value));
      if (authMode === "apiKey") delete given.baseUrl;
      await client.credentials.create({ ...given, authMode });
    },
  });
  if (done) announce("The key was added and sealed.");
  return done;
}
