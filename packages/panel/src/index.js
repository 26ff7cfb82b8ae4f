/** The agent panel as a web component: importing this module defines `<fermata-panel>`. */

import { FermataPanel } from "./panel-element.js";

export { MESSAGES, messagesFor } from "./messages.js";
export { Session } from "./state/session.js";
export { FermataPanel };

const registry = globalThis.customElements;
if (registry && !registry.get("fermata-panel")) registry.define("fermata-panel", FermataPanel);
