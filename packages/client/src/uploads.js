/** Uploads of what is too large for a request: the body refers to them instead. */

/** A request's size as the platform counts it, with every quote escaped. */
export const MAX_REQUEST_BYTES = 4_500_000;
/** The status of an upload address that has its bytes already. */
export const ALREADY_UPLOADED = 412;
/** Images of this size are always uploaded: a prompt may have eight, which would not fit into one request. */
const LARGE_IMAGE_CHARACTERS = 1_300_000;
/** How long an upload is referred to again. The service keeps it for a day. */
const REUSE_MILLISECONDS = 3_600_000;
const ENCODER = new TextEncoder();

/**
 * Announce an upload, and return what the service answers.
 *
 * @typedef {(announcement: {kind: string, bytes: number, sha256: string}) =>
 *   Promise<{ref: string, url: string, headers: Record<string, string>}>} Announce
 */

/** @typedef {(url: string, bytes: Uint8Array, headers: Record<string, string>) => Promise<unknown>} Put */

/** Moves large members of request bodies to uploads. */
export class Uploads {
  /** @type {Map<string, {ref: string, until: number}>} */
  #known = new Map();

  /**
   * Return the text of a body that fits into a request. A large snapshot is uploaded, and large images are.
   *
   * @param {Record<string, any>} body
   * @param {Announce} announce
   * @param {Put} put
   * @returns {Promise<string>}
   */
  async fit(body, announce, put) {
    const small = { ...body };
    const isLarge = (/** @type {any} */ part) => part?.data?.length >= LARGE_IMAGE_CHARACTERS;
    if (Array.isArray(body.content) && body.content.some(isLarge)) {
      small.content = await Promise.all(
        body.content.map((part) => (isLarge(part) ? this.#uploadImage(part, announce, put) : part)),
      );
    }
    let text = JSON.stringify(small);
    if (body.snapshot != null && requestBytes(text) > MAX_REQUEST_BYTES) {
      const bytes = ENCODER.encode(JSON.stringify(body.snapshot));
      delete small.snapshot;
      small.snapshotRef = await this.#upload("snapshot", bytes, announce, put);
      text = JSON.stringify(small);
    }
    if (Array.isArray(small.content) && requestBytes(text) > MAX_REQUEST_BYTES) {
      small.content = await Promise.all(
        small.content.map((part) => (part?.data ? this.#uploadImage(part, announce, put) : part)),
      );
      text = JSON.stringify(small);
    }
    return text;
  }

  /**
   * @param {{data: string}} part
   * @param {Announce} announce
   * @param {Put} put
   */
  async #uploadImage({ data, ...rest }, announce, put) {
    const text = atob(data);
    const bytes = new Uint8Array(text.length);
    for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
    return { ...rest, uploadRef: await this.#upload("image", bytes, announce, put) };
  }

  /**
   * @param {"snapshot" | "image"} kind
   * @param {Uint8Array<ArrayBuffer>} bytes
   * @param {Announce} announce
   * @param {Put} put
   * @returns {Promise<string>} The reference.
   */
  async #upload(kind, bytes, announce, put) {
    if (!crypto.subtle) throw new Error("What is too large for a request can be uploaded from pages with https only.");
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    const sha256 = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const known = this.#known.get(sha256);
    if (known && Date.now() < known.until) return known.ref;
    const { ref, url, headers } = await announce({ kind, bytes: bytes.length, sha256 });
    await put(url, bytes, headers);
    if (this.#known.size > 20) this.#known.clear();
    this.#known.set(sha256, { ref, until: Date.now() + REUSE_MILLISECONDS });
    return ref;
  }
}

/**
 * Count a body's bytes as the platform does.
 *
 * @param {string} text
 */
export function requestBytes(text) {
  if (text.length * 4 <= MAX_REQUEST_BYTES) return text.length;
  const escaped = text.length - text.replace(/["\\]/g, "").length;
  return ENCODER.encode(text).length + escaped;
}
