/** Choose, make, name, copy, delete and import sites. */

import { announce, askInDialog, field, h, iconButton, problemView } from "../dom.js";
import { importFile, importFolder } from "./page-files.js";

/** @import { Site, SiteStore } from "./site-store.js" */

/**
 * @param {SiteStore} store
 * @param {string} currentId
 * @returns {Promise<Site | undefined>} The site to show; nothing if the dialog was closed.
 */
export async function chooseSite(store, currentId) {
  const list = h("ul", { class: "site-list" });
  const problem = h("div");
  const dialog = h("dialog", { "aria-label": "Sites" });
  /** @type {Site | undefined} */
  let chosen;
  const choose = (/** @type {Site | undefined} */ site) => {
    chosen = site;
    dialog.close();
  };
  const fill = async () =>
    list.replaceChildren(...(await store.list()).map((site) => row(site, currentId, choose, store, fill)));
  const bring = async (/** @type {Promise<any>} */ reading) => {
    try {
      choose(await store.add(await reading));
    } catch (error) {
      problem.replaceChildren(problemView(error));
    }
  };
  const close = iconButton("close", "Close", () => dialog.close());
  dialog.append(
    h("div", { class: "section-head" }, h("h2", {}, "Sites"), close),
    list,
    choices(store, choose, bring),
    problem,
  );
  await fill();
  document.body.append(dialog);
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve));
  dialog.remove();
  return chosen;
}

/**
 * @param {SiteStore} store
 * @param {(site: Site) => void} choose
 * @param {(reading: Promise<any>) => void} bring
 */
function choices(store, choose, bring) {
  const file = h("input", { type: "file", accept: ".html,.htm,text/html", hidden: true, "aria-label": "HTML file" });
  const folder = h("input", { type: "file", hidden: true, "aria-label": "Folder", webkitdirectory: true });
  file.addEventListener("change", () => file.files?.[0] && bring(importFile(file.files[0])));
  folder.addEventListener("change", () => folder.files?.length && bring(importFolder([...folder.files])));
  const button = (/** @type {string} */ words, /** @type {() => void} */ onclick) =>
    h("button", { type: "button", class: "button", onclick }, words);
  return h(
    "div",
    { class: "dialog-choices" },
    button("New site", async () => choose(await store.add({ name: "A new site" }))),
    button("Import a file", () => file.click()),
    button("Import a folder", () => folder.click()),
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
 */
function row(site, currentId, choose, store, refill) {
  const changed = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" }).format(site.changedAt);
  const isCurrent = site.id === currentId;
  const open = h(
    "button",
    { type: "button", class: "open", onclick: () => choose(site) },
    h("strong", {}, site.name),
    h("span", { class: "quiet-text" }, isCurrent ? "Open now" : changed),
  );
  const rename = async () => {
    const name = await nameSite(store, site);
    if (name === undefined) return;
    if (isCurrent) choose({ ...site, name });
    else refill();
  };
  const copy = async () => {
    const { id, conversationId, changedAt, ...content } = site;
    await store.add({ ...content, name: `${site.name} (copy)` });
    refill();
  };
  const button = (/** @type {string} */ words, /** @type {() => void} */ onclick) =>
    h("button", { type: "button", class: "link", "aria-label": `${words} ${site.name}`, onclick }, words);
  const remove = isCurrent ? null : button("Delete", () => removeSite(store, site, refill));
  return h("li", {}, open, button("Rename", rename), button("Copy", copy), remove);
}

/** @param {SiteStore} store @param {Site} site @returns {Promise<string | undefined>} The new name. */
export async function nameSite(store, site) {
  const input = h("input", { name: "name", required: true, maxLength: 100, value: site.name });
  let name = site.name;
  const done = await askInDialog("Rename the site", [field("Name", input)], {
    action: "Rename",
    onAction: async () => {
      name = input.value.trim();
      if (!name) throw new Error("A site needs a name.");
      await store.update(site.id, { name });
    },
  });
  return done ? name : undefined;
}

/** @param {SiteStore} store @param {Site} site @param {() => void} refill */
async function removeSite(store, site, refill) {
  const words = h("p", {}, "It is only in this browser and cannot be brought back.");
  const done = await askInDialog(`Delete ${site.name}?`, [words], {
    action: "Delete",
    isDangerous: true,
    onAction: () => store.remove(site.id),
  });
  if (done) announce(`${site.name} was deleted.`);
  refill();
}
