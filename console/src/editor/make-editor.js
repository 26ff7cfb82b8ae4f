/** Make a GrapesJS editor with the agent's plugin, and put a site into it. */

import fermata from "grapesjs-fermata";
import { LANGUAGE_NAME, words } from "../words/index.js";
import { BLOCKS, FIRST_PAGE } from "./blocks.js";
import { addBlock, addKeys, BLOCK_ATTRIBUTES, NOT_TEXT } from "./keyboard-access.js";
import { addLayerKeys, addTextKeys } from "./layer-keys.js";
import { loadGrapesJs, loadMessages } from "./load-grapesjs.js";
import { addStyleKeys } from "./style-keys.js";

/** @typedef {Record<"canvas" | "blocks" | "layers" | "styles" | "selectors" | "traits", HTMLElement>} Places */

/**
 * @param {Places} places
 * @param {any} client
 * @param {any} site
 * @param {() => Promise<void>} save Called when the agent has done something.
 */
export async function makeEditor(places, client, site, save) {
  const extendExecutor = (/** @type {any} */ executor) => savingExecutor(executor, save);
  const [grapesjs, messages] = await Promise.all([loadGrapesJs(), loadMessages(LANGUAGE_NAME)]);
  const editor = grapesjs.init({
    container: places.canvas,
    height: "100%",
    width: "auto",
    storageManager: false,
    telemetry: false,
    i18n: { locale: LANGUAGE_NAME, detectLocale: false, messagesAdd: messages },
    noticeOnUnload: false,
    cssIcons: "",
    panels: { defaults: [] },
    canvas: { notTextable: NOT_TEXT },
    parser: { optionsHtml: { detectDocument: true } },
    undoManager: { trackSelection: false },
    blockManager: { appendTo: places.blocks, blocks: blockList(), appendOnClick: addBlock },
    layerManager: { appendTo: places.layers },
    styleManager: { appendTo: places.styles },
    selectorManager: { componentFirst: true },
    traitManager: { appendTo: places.traits },
    plugins: [fermata],
    pluginsOpts: {
      [/** @type {any} */ (fermata)]: { client, panel: document.createElement("fermata-panel"), extendExecutor },
    },
  });
  await new Promise((resolve) => editor.onReady(resolve));
  editor.Storage.setAutosave(false);
  places.selectors.append(editor.SelectorManager.render([])); // with `appendTo` GrapesJS shows it twice
  putSite(editor, site);
  addLayerKeys(places.layers, editor);
  addKeys(places.blocks, places.layers);
  addTextKeys(places.layers, editor);
  addStyleKeys(places.selectors);
  addStyleKeys(places.styles);
  nameFrames(editor);
  editor.on("canvas:frame:load", () => nameFrames(editor));
  return editor;
}

/**
 * Return an executor whose calls are over when the site is stored. What it has answered is not asked for again, so that a tab
 * that dies afterwards would lose it (decision 0650).
 *
 * @param {any} executor
 * @param {() => Promise<void>} save
 */
function savingExecutor(executor, save) {
  return {
    tools: executor.tools,
    snapshot: () => executor.snapshot(),
    execute: async (/** @type {any} */ call) => {
      const output = await executor.execute(call);
      await save();
      return output;
    },
  };
}

function blockList() {
  return BLOCKS.map((block) => ({ ...block, attributes: BLOCK_ATTRIBUTES }));
}

/** @param {any} editor @param {any} site */
export function putSite(editor, site) {
  if (site.project) editor.loadProjectData(site.project);
  else putPages(editor, site.pages ?? [{ name: "index", html: FIRST_PAGE }]);
  editor.UndoManager.clear();
}

/** @param {any} editor @param {{name: string, html: string}[]} pages */
function putPages(editor, pages) {
  const [first, ...others] = pages;
  editor.Pages.getSelected().setName(first.name);
  editor.setComponents(first.html);
  for (const { name, html } of others) {
    const page = editor.Pages.add({ name }, { select: true });
    page.setName(name);
    editor.setComponents(html);
  }
  editor.Pages.select(editor.Pages.getAll()[0]);
}

/** Say what the frame is: GrapesJS gives it no title. @param {any} editor */
function nameFrames(editor) {
  for (const frame of editor.getContainer().querySelectorAll("iframe")) frame.title = words.editor.canvasPage;
}
