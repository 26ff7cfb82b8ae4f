/** Show anew what others change, while a page is looked at. */

/** @import { PageContext } from "../shell/shell.js" */

const REFRESH_MS = 4_000;
/** A turn of the assistant on this page has changed. */
export const ASSISTANT_EVENT = "fermata-turn";

/**
 * Call a function every few seconds while the page is visible, and soon after the assistant has done something.
 *
 * @param {PageContext} context
 * @param {() => unknown} refresh
 */
export function refreshRegularly({ signal }, refresh) {
  let isBusy = false;
  let isAsked = false;
  const run = async () => {
    if (document.visibilityState !== "visible") return;
    if (isBusy) {
      isAsked = true;
      return;
    }
    isBusy = true;
    do {
      isAsked = false;
      await refresh();
    } while (isAsked && !signal.aborted);
    isBusy = false;
  };
  const timer = setInterval(run, REFRESH_MS);
  addEventListener(ASSISTANT_EVENT, run, { signal });
  signal.addEventListener("abort", () => clearInterval(timer));
}
