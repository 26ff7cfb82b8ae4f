/**
 * Show where files can be dropped while they are dragged over an element, and take those that are dropped.
 *
 * @param {HTMLElement} element Has the class `dropping` meanwhile.
 * @param {(files: File[]) => void} onFiles
 * @param {AbortSignal} signal
 */
export function listenToDrops(element, onFiles, signal) {
  const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files");
  const show = (/** @type {DragEvent} */ event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    element.classList.add("dropping");
  };
  const take = (/** @type {DragEvent} */ event) => {
    element.classList.remove("dropping");
    if (!hasFiles(event)) return;
    event.preventDefault();
    onFiles([...(event.dataTransfer?.files ?? [])]);
  };
  element.addEventListener("dragover", show, { signal });
  element.addEventListener("dragleave", () => element.classList.remove("dropping"), { signal });
  element.addEventListener("drop", take, { signal });
}
