/** Upload images, documents and videos: by a button, or by dropping them. */

import { announce, h } from "../dom.js";
import { formatCount, formatMegabytes } from "../format.js";
import { words } from "../words/index.js";
import { makeImageStore } from "./image-store.js";
import { MAX_BYTES, MAX_QUEUED, UploadQueue } from "./upload-queue.js";

/** @import { SpaceView } from "./space-page.js" */
/** @import { Upload } from "./upload-queue.js" */

/**
 * Make the place where images are dropped, with what becomes of each.
 *
 * @param {SpaceView} view
 * @param {() => void} onStored
 */
export function uploadPlace(view, onStored) {
  const { choose, drop } = words.media;
  const list = h("ul", { class: "uploads", "aria-label": words.media.uploads });
  const progress = h("progress", { "aria-label": words.media.uploads, hidden: true });
  const store = makeImageStore(view.content, words.media.changeSet, view.context.signal);
  const queue = new UploadQueue(store, (changed) => show(changed));
  /** Rows that do not change stay, with what is focused in them. @type {Map<Upload, HTMLElement>} */
  const rows = new Map();
  const showRow = (/** @type {Upload} */ upload) => {
    const [before, row] = [rows.get(upload), uploadRow(upload, view, queue)];
    const hadFocus = before?.contains(document.activeElement);
    rows.set(upload, row);
    if (before) before.replaceWith(row);
    else list.append(row);
    if (hadFocus) row.focus();
  };
  const show = (/** @type {Upload | undefined} */ changed) => {
    for (const [upload, row] of rows) {
      if (queue.uploads.includes(upload)) continue;
      row.remove();
      rows.delete(upload);
    }
    for (const upload of queue.uploads) if (upload === changed || !rows.has(upload)) showRow(upload);
    progress.hidden = !queue.isBusy;
    progress.max = queue.uploads.length;
    progress.value = queue.uploads.filter(({ state }) => state !== "waiting" && state !== "uploading").length;
    if (changed?.state === "stored") onStored();
    if (changed && !queue.isBusy) announce(words.media.done(queue.stored, formatCount(queue.stored)));
  };
  const add = (/** @type {File[]} */ files) => {
    if (files.length > MAX_QUEUED) announce(words.media.tooMany(formatCount(MAX_QUEUED)));
    queue.add(files);
  };
  const input = h("input", {
    type: "file",
    accept: Object.keys(MAX_BYTES).join(","),
    multiple: true,
    class: "hidden-words",
  });
  input.addEventListener("change", () => {
    add([...(input.files ?? [])]);
    input.value = ""; // so that the same file can be chosen again
  });
  const button = h("label", { class: "button primary file-button" }, choose, input);
  const place = h("div", { class: "drop-place" }, button, h("p", { class: "quiet-text" }, drop), progress, list);
  takeDrops(place, add, view.context.signal);
  return place;
}

/**
 * Take the files that are dropped anywhere on the page: one that misses the place must not replace the console.
 *
 * @param {HTMLElement} place
 * @param {(files: File[]) => void} add
 * @param {AbortSignal} signal
 */
function takeDrops(place, add, signal) {
  const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files");
  const over = (/** @type {DragEvent} */ event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    place.classList.add("over");
  };
  const leave = (/** @type {DragEvent} */ event) => event.relatedTarget === null && place.classList.remove("over");
  const drop = (/** @type {DragEvent} */ event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    place.classList.remove("over");
    add([...(event.dataTransfer?.files ?? [])]);
  };
  addEventListener("dragover", over, { signal });
  addEventListener("dragleave", leave, { signal });
  addEventListener("drop", drop, { signal });
}

/** @param {Upload} upload @param {SpaceView} view @param {UploadQueue} queue */
function uploadRow(upload, { linkTo }, queue) {
  const { states } = words.media;
  const name = h("bdi", { class: "upload-name" }, upload.file.name);
  const kind = { stored: "tag good", failed: "tag bad", refused: "tag bad" }[/** @type {string} */ (upload.state)];
  const waitsIn = upload.state === "stored" && upload.asset.waitsIn;
  const state = h("span", { class: kind ?? "tag" }, waitsIn ? words.media.waits : states[upload.state]);
  const label = `${words.tryAgain} ${upload.file.name}`;
  const retry = () => queue.retry(upload);
  const action =
    upload.state === "stored"
      ? waitsIn
        ? h("a", { href: linkTo("change-sets", waitsIn), class: "link" }, words.media.showChangeSet)
        : h("a", { href: linkTo("media", upload.asset.id), class: "link" }, words.media.describeIt)
      : upload.state === "failed" &&
        h("button", { type: "button", class: "link", "aria-label": label, onclick: retry }, words.tryAgain);
  const problem = problemOf(upload);
  const text = problem && h("p", { class: "upload-problem", role: "alert" }, problem);
  return h("li", { class: `upload ${upload.state}`, tabIndex: -1 }, name, state, action, text);
}

/** @param {Upload} upload */
function problemOf({ state, error, file }) {
  const { refusals } = words.media;
  if (state === "refused")
    return refusals[/** @type {keyof typeof refusals} */ (error)](
      formatMegabytes(file.size),
      formatMegabytes(MAX_BYTES[file.type] ?? 0),
    );
  if (state !== "failed") return "";
  return [error.message, error.hint].filter((text, index, all) => text && all.indexOf(text) === index).join(" ");
}
