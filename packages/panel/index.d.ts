/** The types of `src/index.js`, and that of the element for `document.querySelector("fermata-panel")`. */

import type { FermataPanel } from "./dist/index.js";

export * from "./dist/index.js";

declare global {
  interface HTMLElementTagNameMap {
    "fermata-panel": FermataPanel;
  }
}
