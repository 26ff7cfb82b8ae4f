/** The editor: GrapesJS with the agent, over the sites of this browser. */

import { emptyView, h, icon, iconButton } from "../dom.js";
import { exportSite } from "../sites/export-dialog.js";
import { chooseSite } from "../sites/site-dialog.js";
import { openSiteStore } from "../sites/site-store.js";
import { recall, remember } from "../storage.js";
import { words } from "../words/index.js";

/** @import { PageContext } from "../shell/shell.js" */

const LAST_SITE = "fermata-last-site";
const DEVICES = /** @type {const} */ ([
  { id: "desktop", shape: "desktop" },
  { id: "tablet", shape: "tablet" },
  { id: "mobilePortrait", shape: "phone" },
]);
const NARROW = "(max-width: 1100px)";

/** @param {HTMLElement} target @param {PageContext} context @param {string} siteId */
export async function show(target, context, siteId) {
  const missing = context.session.config.missingPackages ?? [];
  if (missing.length) {
    target.append(missingView(missing));
    return;
  }
  const store = await openSiteStore();
  if (context.signal.aborted) return;
  const site = await findSite(store, siteId);
  remember(LAST_SITE, site.id);
  target.append(h("h1", { class: "hidden-words" }, site.name));
  await new EditorView(target, context, store, site).open();
}

/** @param {string[]} packages */
function missingView(packages) {
  const { notInstalled, notInstalledText, goToWorkspace } = words.editor;
  const action = h("a", { class: "button", href: "#/usage" }, goToWorkspace);
  return h(
    "div",
    { class: "page" },
    h("h1", { class: "hidden-words" }, words.shell.pages.editor),
    emptyView(notInstalled, notInstalledText(packages.join(", ")), action),
  );
}

/** @param {import("../sites/site-store.js").SiteStore} store @param {string} id */
async function findSite(store, id) {
  const wanted = await store.get(id || recall(LAST_SITE) || "none");
  return wanted ?? (await store.list())[0] ?? (await store.add({ name: words.editor.firstSite }));
}

class EditorView {
  /**
   * @param {HTMLElement} target
   * @param {PageContext} context
   * @param {import("../sites/site-store.js").SiteStore} store
   * @param {any} site
   */
  constructor(target, context, store, site) {
    this.target = target;
    this.context = context;
    this.store = store;
    this.site = site;
    const place = () => h("div");
    this.places = {
      canvas: h("div", { class: "canvas" }),
      blocks: place(),
      layers: place(),
      styles: place(),
      selectors: place(),
      traits: place(),
    };
    this.saved = h("span", { class: "saved", role: "status" });
    this.siteName = h("span", {}, site.name);
    this.agentPane = h("aside", { class: "agent-pane", "aria-label": words.editor.assistant });
    this.workbench = h("div", { class: "workbench" });
  }

  async open() {
    const { agentPane, places, workbench } = this;
    const isNarrow = matchMedia(NARROW).matches;
    workbench.classList.toggle("no-tools", isNarrow);
    workbench.classList.toggle("no-agent", isNarrow);
    const loading = h("p", { class: "boot", role: "status" }, words.loading);
    workbench.append(this.#toolsPane(), h("div", { class: "canvas-pane" }, places.canvas, loading), agentPane);
    this.toolbar = h("div", { class: "toolbar", role: "toolbar", "aria-label": words.editor.toolbar });
    this.target.append(this.toolbar, workbench);
    const [{ makeEditor }, { pageChooser }, { Saver }] = await Promise.all([
      import("../editor/make-editor.js"),
      import("../editor/page-chooser.js"),
      import("../editor/saver.js"),
      import("@fermata/panel"),
    ]);
    if (this.context.signal.aborted) return;
    const save = async () => this.saver?.save();
    const editor = await makeEditor(places, this.context.client, this.site, save);
    if (this.context.signal.aborted) {
      editor.destroy();
      return;
    }
    loading.remove();
    this.editor = editor;
    this.saver = new Saver(this.editor, this.store, this.site, (state) => this.#showState(state));
    this.context.signal.addEventListener("abort", () => this.#close());
    this.#fillToolbar(pageChooser(editor));
    this.#mountPanel();
  }

  #mountPanel() {
    const panel = this.editor.runCommand("fermata:mount", { target: this.agentPane });
    panel.setAttribute("memory", "none");
    panel.hasSettings = true;
    if (this.site.conversationId) panel.conversationId = this.site.conversationId;
    panel.addEventListener("fermata-settings", () => this.context.open("providers"));
    panel.addEventListener("fermata-sign-in", () => location.reload());
    panel.addEventListener("fermata-turn", () => this.#rememberConversation(panel.conversationId));
  }

  /** @param {string | undefined} id */
  async #rememberConversation(id) {
    if (!id || id === this.site.conversationId) return;
    this.site.conversationId = id;
    await this.store.update(this.site.id, { conversationId: id });
  }

  #toolsPane() {
    const { blocks, layers, styles, selectors, traits } = this.places;
    const tabs = [
      { id: "add", name: words.editor.tabs.add, body: h("div", {}, blocks) },
      {
        id: "layers",
        name: words.editor.tabs.layers,
        body: h("div", {}, layers, h("p", { class: "layer-hint" }, words.editor.layerHint)),
      },
      { id: "style", name: words.editor.tabs.style, body: h("div", {}, selectors, traits, styles) },
    ];
    const choose = (/** @type {number} */ chosen) => {
      tabs.forEach(({ body }, index) => {
        body.hidden = index !== chosen;
        buttons[index].setAttribute("aria-selected", String(index === chosen));
        buttons[index].tabIndex = index === chosen ? 0 : -1;
      });
    };
    const buttons = tabs.map(({ id: tab, name, body }, index) => {
      const id = `tab-${tab}`;
      body.setAttribute("role", "tabpanel");
      body.setAttribute("aria-label", name);
      body.className = "tab-body";
      return h("button", { type: "button", role: "tab", id, onclick: () => choose(index) }, name);
    });
    const list = h("div", { class: "tabs", role: "tablist", "aria-label": words.editor.tools }, ...buttons);
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (buttons.findIndex((button) => button.tabIndex === 0) + step + buttons.length) % buttons.length;
      choose(next);
      buttons[next].focus();
    });
    choose(0);
    return h("aside", { class: "tools-pane", "aria-label": words.editor.tools }, list, ...tabs.map(({ body }) => body));
  }

  /** @param {HTMLElement} pages */
  #fillToolbar(pages) {
    const { editor, workbench } = this;
    const devices = DEVICES.map(({ id, shape }) => {
      const choose = () => {
        editor.Devices.select(id);
        for (const button of devices) button.setAttribute("aria-pressed", String(button === own));
      };
      const own = iconButton(shape, words.editor.devices[shape], choose, { "aria-pressed": String(id === "desktop") });
      return own;
    });
    const show = (/** @type {string} */ name) => {
      const isHidden = workbench.classList.toggle(name);
      const isAlone = !isHidden && matchMedia(NARROW).matches; // there the two lie above the canvas, and each other
      for (const other of Object.keys(toggles)) if (isAlone && other !== name) workbench.classList.add(other);
      tell();
      editor.refresh();
    };
    /** @type {Record<string, HTMLElement>} */
    const toggles = {
      "no-tools": iconButton("blocks", words.editor.tools, () => show("no-tools")),
      "no-agent": iconButton("agent", words.editor.assistant, () => show("no-agent")),
    };
    const tell = () => {
      for (const [name, button] of Object.entries(toggles))
        button.setAttribute("aria-pressed", String(!workbench.classList.contains(name)));
    };
    tell();
    this.toolbar?.append(
      toggles["no-tools"],
      h(
        "button",
        { type: "button", class: "site-button", "aria-haspopup": "dialog", onclick: () => this.#chooseSite() },
        this.siteName,
        icon("chevron"),
      ),
      pages,
      this.saved,
      h("div", { class: "spacer" }),
      h("div", { class: "group device-group", role: "group", "aria-label": words.editor.pageWidth }, ...devices),
      h(
        "div",
        { class: "group" },
        iconButton("undo", words.editor.undo, () => editor.UndoManager.undo()),
        iconButton("redo", words.editor.redo, () => editor.UndoManager.redo()),
      ),
      iconButton("download", words.editor.exportIt, () => exportSite(editor, this.site)),
      toggles["no-agent"],
    );
  }

  async #chooseSite() {
    await this.saver?.save();
    const choice = await chooseSite(this.store, this.site.id);
    if (!choice) return;
    if (choice.id !== this.site.id) this.context.open(`editor/${choice.id}`);
    else if (choice.name !== this.site.name) this.siteName.textContent = choice.name;
  }

  /** @param {import("../editor/saver.js").SaveState} state */
  #showState(state) {
    const { saved, saving, notSaved } = words.editor;
    this.saved.textContent = state === "saved" ? saved : state === "changed" ? saving : notSaved[state];
    this.saved.classList.toggle("bad", state !== "saved" && state !== "changed");
  }

  async #close() {
    await this.saver?.close();
    this.editor?.destroy();
  }
}
