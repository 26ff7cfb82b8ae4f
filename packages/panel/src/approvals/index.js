/** Approvals for other pages: cards of calls that wait, with their words and their looks. */

import { APPROVAL_CSS } from "./approval-style.js";

export { ApprovalCard, outcomeWords } from "./approval-card.js";
export { approvalFromService } from "./approval-view.js";
export { APPROVAL_WORDS } from "./approval-words.js";

/** @type {CSSStyleSheet | undefined} */
let sheet;

/** Let cards look as in the panel, in a page that has adopted its tokens. Once is enough. */
export function adoptApprovalStyle() {
  if (sheet) return;
  sheet = new CSSStyleSheet();
  sheet.replaceSync(APPROVAL_CSS);
  document.adoptedStyleSheets.push(sheet);
}
