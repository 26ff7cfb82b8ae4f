/** The agent panel as a web component: importing this module defines `<fermata-panel>`. */

import { FermataPanel } from "./panel-element.js";

export { MESSAGES, messagesFor } from "./messages.js";
export { Session } from "./state/session.js";
export { FermataPanel };

if (!customElements.get("fermata-panel")) customElements.define("fermata-panel", FermataPanel);
