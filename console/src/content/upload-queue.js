/** Uploads of media, one after another: what waits, what is under way, what is stored, and what has failed and why. */

const IMAGE_BYTES = 15_000_000;
/** What the service stores, and how large one of each kind may be. @type {Record<string, number>} */
export const MAX_BYTES = {
  "image/jpeg": IMAGE_BYTES,
  "image/png": IMAGE_BYTES,
  "image/gif": IMAGE_BYTES,
  "image/webp": IMAGE_BYTES,
  "image/avif": IMAGE_BYTES,
  "image/svg+xml": 1_000_000,
  "application/pdf": 50_000_000,
  "video/mp4": 100_000_000,
  "video/webm": 100_000_000,
};
/** Of files that are dropped together. */
export const MAX_QUEUED = 100;

/** @typedef {"waiting" | "uploading" | "stored" | "failed" | "refused"} UploadState */
/** @typedef {{file: File, state: UploadState, error?: any, asset?: any}} Upload `refused` is a file that is not sent at all. */

export class UploadQueue {
  /** @type {Upload[]} */
  uploads = [];
  #isRunning = false;

  /**
   * @param {(file: File) => Promise<any>} send Stores a file, and returns its asset.
   * @param {(changed: Upload | undefined) => void} onChange
   */
  constructor(send, onChange) {
    this.send = send;
    this.onChange = onChange;
  }

  get stored() {
    return this.uploads.filter(({ state }) => state === "stored").length;
  }

  get isBusy() {
    return this.uploads.some(({ state }) => state === "waiting" || state === "uploading");
  }

  /**
   * Add files. What was done before is forgotten, unless something is under way.
   *
   * @param {Iterable<File>} files
   */
  add(files) {
    if (!this.isBusy) this.uploads = [];
    const room = Math.max(0, MAX_QUEUED - this.uploads.length);
    const added = [...files].slice(0, room);
    this.uploads.push(...added.map((file) => makeUpload(file)));
    this.onChange(undefined);
    return this.#run();
  }

  /** @param {Upload} upload */
  retry(upload) {
    upload.state = "waiting";
    upload.error = undefined;
    this.onChange(upload);
    return this.#run();
  }

  async #run() {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      for (let next = this.#next(); next; next = this.#next()) await this.#store(next);
    } finally {
      this.#isRunning = false;
    }
  }

  #next() {
    return this.uploads.find(({ state }) => state === "waiting");
  }

  /** @param {Upload} upload */
  async #store(upload) {
    upload.state = "uploading";
    this.onChange(upload);
    try {
      upload.asset = await this.send(upload.file);
      upload.state = "stored";
    } catch (error) {
      upload.error = error;
      upload.state = "failed";
    }
    this.onChange(upload);
  }
}

/**
 * Say why a file is not sent at all.
 *
 * @param {{type: string, size: number}} file
 * @returns {"otherKind" | "tooLarge" | "empty" | undefined}
 */
export function findRefusal({ type, size }) {
  if (!Object.hasOwn(MAX_BYTES, type)) return "otherKind";
  if (size === 0) return "empty";
  return size > MAX_BYTES[type] ? "tooLarge" : undefined;
}

/** @param {File} file @returns {Upload} */
function makeUpload(file) {
  const error = findRefusal(file);
  return error ? { file, state: "refused", error } : { file, state: "waiting" };
}
