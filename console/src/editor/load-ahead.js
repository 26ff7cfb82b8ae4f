/** Loads what the editor consists of, before it is known which site it opens. */

import "@fermata/panel";
import "./make-editor.js";
import "./page-chooser.js";
import "./saver.js";
import { LANGUAGE_NAME } from "../words/index.js";
import { loadGrapesJs, loadMessages } from "./load-grapesjs.js";

loadGrapesJs().catch(() => {});
loadMessages(LANGUAGE_NAME).catch(() => {});
