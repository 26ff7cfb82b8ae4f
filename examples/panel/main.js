import "@fermata/panel";
import { executor, fermata } from "../own-editor/agent.js";

const panel = document.querySelector("fermata-panel");
panel.client = fermata;
panel.executor = executor;
document.documentElement.dataset.ready = "";
