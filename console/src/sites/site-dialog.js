/** Choose, make, name, copy, delete and import sites. */

import { announce, askInDialog, field, h, iconButton, problemView } from "../dom.js";
import { formatInstant } from "../format.js";
import { words } from "../words/index.js";
import { importFile, importFolder } from "./import-pages.js";

/** @import { Site, SiteStore } from "./site-store.js" */

/**
 * @param {SiteStore} store
 * @param {string} currentId
 * @returns {Promise<Site | undefined>} The site to show; nothing if the dialog was closed.
 */
export async function chooseSite(store, currentId) {
  const list = h("ul", { class: "site-list" });
  const problem = h("div");
  const dialog = h("dialog", { "aria-label": words.sites.title });
  /** @type {Site | undefined} */
  let chosen;
  const choose = (/** @type {Site | undefined} */ site) => {
    chosen = site;
    dialog.close();
  };
  const fill = async () =>
    list.replaceChildren(...(await store.list()).map((site) => row(site, currentId, choose, store, fill, attempt)));
  const attempt = (/** @type {Promise<any>} */ work) => {
    problem.replaceChildren();
    return work.catch((error) => problem.replaceChildren(problemView(error)));
  };
  const bring = (/** @type {Promise<any>} */ reading) =>
    attempt(reading.then((content) => store.add(content)).then(choose));
  const close = iconButton("close", words.close, () => dialog.close());
  dialog.append(
    h("div", { class: "section-head" }, h("h2", {}, words.sites.title), close),
    list,
    choices(bring),
    problem,
  );
  await fill();
  document.body.append(dialog);
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve));
  dialog.remove();
  return chosen;
}

/** @param {(reading: Promise<any>) => void} bring */
function choices(bring) {
  const file = h("input", {
    type: "file",
    accept: ".html,.htm,text/html",
    hidden: true,
    "aria-label": words.sites.file,
  });
  const folder = h("input", { type: "file", hidden: true, "aria-label": words.sites.folder, webkitdirectory: true });
  file.addEventListener("change", () => file.files?.[0] && bring(importFile(file.files[0])));
  folder.addEventListener("change", () => folder.files?.length && bring(importFolder([...folder.files])));
  const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
    h("button", { type: "button", class: "button", onclick }, label);
  return h(
    "div",
    { class: "dialog-choices" },
    button(words.sites.newSite, () => bring(Promise.resolve({ name: words.sites.newName }))),
    button(words.sites.importFile, () => file.click()),
    button(words.sites.importFolder, () => folder.click()),
    file,
    folder,
  );
}

/**
 * @param {Site} site
 * @param {string} currentId
 * @param {(site: Site | undefined) => void} choose
 * @param {SiteStore} store
 * @param {() => void} refill
 * @param {(work: Promise<any>) => Promise<any>} attempt Says what went wrong.
 */
function row(site, currentId, choose, store, refill, attempt) {
  const isCurrent = site.id === currentId;
  const open = h(
    "button",
    { type: "button", class: "open", onclick: () => choose(site) },
    h("strong", {}, site.name),
    h("span", { class: "quiet-text" }, isCurrent ? words.sites.openNow : formatInstant(site.changedAt)),
  );
  const rename = async () => {
    const name = await nameSite(store, site);
    if (name === undefined) return;
    if (isCurrent) choose({ ...site, name });
    else refill();
  };
  const copy = async () => {
    const { id, conversationId, changedAt, ...content } = site;
    await attempt(store.add({ ...content, name: words.sites.copyOf(site.name) }));
    refill();
  };
  const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
    h("button", { type: "button", class: "link", "aria-label": `${label} ${site.name}`, onclick }, label);
  const remove = isCurrent ? null : button(words.remove, () => removeSite(store, site, refill));
  return h("li", {}, open, button(words.rename, rename), button(words.copy, copy), remove);
}

/** @param {SiteStore} store @param {Site} site @returns {Promise<string | undefined>} The new name. */
export async function nameSite(store, site) {
  const input = h("input", { name: "name", required: true, maxLength: 100, value: site.name });
  let name = site.name;
  const done = await askInDialog(words.sites.renameTitle, [field(words.sites.name, input)], {
    action: words.rename,
    onAction: async () => {
      name = input.value.trim();
      if (!name) throw new Error(words.sites.needsName);
      await store.update(site.id, { name });
    },
  });
  return done ? name : undefined;
}

/** @param {SiteStore} store @param {Site} site @param {() => void} refill */
async function removeSite(store, site, refill) {
  const text = h("p", {}, words.sites.deleteText);
  const done = await askInDialog(words.sites.deleteTitle(site.name), [text], {
    action: words.remove,
    isDangerous: true,
    onAction: () => store.remove(site.id),
  });
  if (done) announce(words.sites.deleted(site.name));
  refill();
}
