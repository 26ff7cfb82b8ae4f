/** Models: the default of each scope, and what the models of a key cost. */

import { announce, emptyView, field, h, number, problemView, showLoaded, table } from "../dom.js";
import { formatCost, formatCount } from "../format.js";
import { words } from "../words/index.js";
import { providerLabel } from "./providers.js";

/** @import { PageContext } from "../shell/shell.js" */

/** @param {HTMLElement} target @param {PageContext} context */
export function show(target, context) {
  const body = h("div");
  target.append(
    h("header", { class: "page-head" }, h("h1", {}, words.shell.pages.models)),
    h("p", { class: "lead" }, words.models.lead),
    body,
  );
  return showLoaded(
    body,
    () => load(context),
    (loaded) => view(loaded, context),
  );
}

/** @param {PageContext} context */
async function load({ client }) {
  const [scopes, defaults, keys] = await Promise.all([
    client.scopes.list(),
    client.defaults.list(),
    client.credentials.list(),
  ]);
  const models = await Promise.all(
    keys.map(async (/** @type {any} */ key) => {
      const of = { providerId: key.providerId, credentialId: key.id };
      return client.models.list(of).catch((/** @type {any} */ error) => ({ error }));
    }),
  );
  return { scopes, defaults, keys, models };
}

/** @param {any} loaded @param {PageContext} context */
function view({ scopes, defaults, keys, models }, context) {
  if (!keys.length) {
    const action = h("a", { class: "button primary", href: "#/providers" }, words.providers.addKey);
    return emptyView(words.models.empty, words.models.emptyText, action);
  }
  const choices = keys.flatMap((/** @type {any} */ key, /** @type {number} */ index) =>
    Array.isArray(models[index]) ? models[index].map((/** @type {any} */ model) => ({ key, model })) : [],
  );
  const rows = scopes.map((/** @type {any} */ scope) => defaultRow(scope.name, defaults[scope.name], choices, context));
  return [
    h("section", { "aria-label": words.models.defaults }, h("div", { class: "default-rows" }, ...rows)),
    ...keys.map((/** @type {any} */ key, /** @type {number} */ index) => keySection(key, models[index])),
  ];
}

/**
 * @param {string} scope
 * @param {any} current
 * @param {any[]} choices
 * @param {PageContext} context
 */
function defaultRow(scope, current, choices, { client }) {
  const select = h("select", { name: scope });
  const toValue = (/** @type {string} */ credentialId, /** @type {string} */ modelId) => `${credentialId} ${modelId}`;
  select.append(h("option", { value: "" }, words.models.none));
  select.append(
    ...choices.map(({ key, model }) =>
      h("option", { value: toValue(key.id, model.id) }, `${model.label ?? model.id} · ${key.displayLabel}`),
    ),
  );
  const value = current ? toValue(current.credentialId, current.modelId) : "";
  if (value && ![...select.options].some((option) => option.value === value))
    select.append(h("option", { value }, words.models.notListed(current.modelId)));
  select.value = value;
  let saved = value;
  const result = h("small", { role: "status" });
  select.addEventListener("change", async () => {
    const [credentialId, ...modelId] = select.value.split(" ");
    select.disabled = true;
    try {
      if (select.value) await client.defaults.update(scope, { credentialId, modelId: modelId.join(" ") });
      else await client.defaults.remove(scope);
      saved = select.value;
      result.textContent = "";
      announce(words.models.changed(scope));
    } catch (error) {
      result.textContent = error instanceof Error ? error.message : String(error);
      select.value = saved;
    } finally {
      select.disabled = false;
    }
  });
  return h("div", {}, field(scope[0].toUpperCase() + scope.slice(1), select), result);
}

/** @param {any} key @param {any} models */
function keySection(key, models) {
  const title = `${key.displayLabel} · ${providerLabel(key.providerId)}`;
  if (!Array.isArray(models)) return h("section", {}, h("h2", {}, title), problemView(models.error));
  if (!models.length)
    return h("section", {}, h("h2", {}, title), h("p", { class: "quiet-text" }, words.models.noModels));
  const { model: name, context, input, output, can } = words.models.columns;
  const columns = [name, number(context), number(input), number(output), can];
  const rows = models.map((model) => [
    h("div", {}, h("strong", {}, model.label ?? model.id), h("div", { class: "quiet-text" }, model.id)),
    model.contextWindow ? formatCount(model.contextWindow) : words.unknown,
    priceOf(model.pricing?.inputPerMTok),
    priceOf(model.pricing?.outputPerMTok),
    h("div", { class: "tags" }, ...abilitiesOf(model.capabilities)),
  ]);
  return h("section", {}, table(title, columns, rows));
}

/** @param {number | undefined | null} amount */
function priceOf(amount) {
  return amount === undefined || amount === null ? words.unknown : formatCost(amount);
}

/** @param {Record<string, boolean> | undefined} capabilities */
function abilitiesOf(capabilities = {}) {
  const there = Object.entries(words.models.abilities).filter(([name]) => capabilities[name]);
  return there.map(([, ability]) => h("span", { class: "tag" }, ability));
}
