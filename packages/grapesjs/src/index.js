/** The plugin for GrapesJS: it adds the agent to an editor. */

import { Assistant } from "./assistant.js";
import { parseCss } from "./css/parse-css.js";
import { rulesToGrapes } from "./css/rule-json.js";
import { createExecutor, GrapesExecutor } from "./executor.js";
import { MESSAGES } from "./messages.js";
import { PanelView } from "./panel-view.js";

export { createExecutor, GrapesExecutor };

/**
 * @typedef {object} FermataOptions
 * @property {any} [client] a `Fermata` of `@fermata/client`, or options for one
 * @property {HTMLElement | false} [panel] the panel's element; `<fermata-panel>` where it is loaded; false for none
 * @property {Record<string, any>} [panelOptions] properties to set on the panel
 * @property {string} [scope] the assistant to ask; `site` by default
 * @property {(executor: GrapesExecutor) => any} [extendExecutor] returns an executor that carries out further tools, such as
 *   `withPageState` of `@fermata/client/page-state`
 * @property {boolean} [parserCss] false keeps the editor's own CSS parser, which drops shorthands with `var()`
 * @property {boolean} [runScripts] the canvas runs scripts that a model has written; false by default
 * @property {number} [undoSteps] how many changes the editor's undo keeps at least
 * @property {Record<string, any>} [messages] texts by language, in place of the plugin's own
 */

const UNDO_STEPS = 5_000;

/**
 * A plugin of GrapesJS: an assistant that edits the site in the editor.
 *
 *     grapesjs.init({ plugins: [fermata], pluginsOpts: { [fermata]: { client } } })
 *
 * It adds the commands `fermata:ask`, `fermata:execute`, `fermata:snapshot`, `fermata:undo-turn`, `fermata:code-assets`,
 * `fermata:mount` and `fermata:open`, and triggers `fermata:turn` when a turn was started, `fermata:edit` after each edit
 * and `fermata:code` when a script or style sheet of the site was changed.
 * @param {any} editor
 * @param {FermataOptions} [opts]
 */
export default function fermata(editor, opts = {}) {
  editor.I18n.addMessages(MESSAGES);
  if (opts.messages) editor.I18n.addMessages(opts.messages);
  if (opts.parserCss !== false) useOwnCssParser(editor);
  keepTextsOfPictures(editor);
  keepUndoSteps(editor, opts.undoSteps ?? UNDO_STEPS);
  const executor = createExecutor(editor, { runScripts: opts.runScripts });
  const assistant = new Assistant(editor, executor, opts);
  const panel = new PanelView(editor, assistant, opts);
  addCommands(editor, assistant, panel);
  if (opts.panel !== false) editor.onReady(() => panel.addButton());
}

/** @param {any} editor */
function useOwnCssParser(editor) {
  const config = editor.Parser.getConfig();
  if (config.parserCss) return;
  config.parserCss = (/** @type {string} */ css) => {
    const onRefusal = (/** @type {string} */ message) =>
      editor.log(`fermata: ${message}`, { level: "warning", ns: "fermata" });
    return parseCss(css, { onRefusal }).flatMap(rulesToGrapes);
  };
}

/**
 * Within an SVG, GrapesJS takes texts for elements without a name, and loses those beside elements.
 * @param {any} editor
 */
function keepTextsOfPictures(editor) {
  const { model } = editor.Components.getType("svg-in") ?? {};
  if (!model || model.keepsTexts) return;
  const { isComponent } = model;
  model.keepsTexts = true; // the type is the same one for all editors of a page
  model.isComponent = (/** @type {Node} */ node, /** @type {any} */ options) =>
    node.nodeType === Node.ELEMENT_NODE && isComponent(node, options);
}

/**
 * @param {any} editor
 * @param {number} count
 */
function keepUndoSteps(editor, count) {
  const stack = editor.UndoManager.getStack();
  stack.maximumStackLength = Math.max(count, stack.maximumStackLength ?? 0);
}

/**
 * @param {any} editor
 * @param {Assistant} assistant
 * @param {PanelView} panel
 */
function addCommands(editor, assistant, panel) {
  const { executor } = assistant;
  /** @type {Record<string, (options: any) => unknown>} */
  const commands = {
    "fermata:ask": (options) => assistant.ask(options),
    "fermata:execute": (request) => executor.execute(request),
    "fermata:snapshot": () => executor.snapshot(),
    "fermata:undo-turn": ({ turnId }) => executor.undoTurn(turnId),
    "fermata:code-assets": () => Object.fromEntries(executor.document.code.all()),
    "fermata:mount": ({ target }) => panel.mount(target),
  };
  for (const [id, run] of Object.entries(commands)) {
    editor.Commands.add(id, {
      run: (/** @type {any} */ _editor, /** @type {any} */ _sender, options = {}) => run(options),
    });
  }
}
