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
    const isLarge = (/** @type {any} */ image) => image?.data?.length >= LARGE_IMAGE_CHARACTERS;
    const upload = (/** @type {any} */ image) => this.#uploadImage(image, announce, put);
    const small = await changeImages(body, isLarge, upload);
    let text = JSON.stringify(small);
    if (body.snapshot != null && requestBytes(text) > MAX_REQUEST_BYTES) {
      const bytes = ENCODER.encode(JSON.stringify(body.snapshot));
      delete small.snapshot;
      small.snapshotRef = await this.#upload("snapshot", bytes, announce, put);
      text = JSON.stringify(small);
    }
    if (requestBytes(text) <= MAX_REQUEST_BYTES) return text;
    return JSON.stringify(await changeImages(small, (image) => Boolean(image?.data), upload));
  }

  /**
   * Forget the uploads that a body refers to: the service no longer has them.
   *
   * @param {string} text
   * @returns {boolean} Whether there are any, so that the body may be taken with others.
   */
  forget(text) {
    const used = [...this.#known].filter(([, { ref }]) => text.includes(ref));
    for (const [sha256] of used) this.#known.delete(sha256);
    return used.length > 0;
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
    const sha256 = await digestOf(bytes);
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
 * Return the SHA-256 of bytes, in hexadecimal.
 *
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
export async function digestOf(bytes) {
  if (!crypto.subtle) throw new Error("Uploads need a page with https.");
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/** @param {Uint8Array} bytes */
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * Return a copy of a body in which some of its images, those of a prompt and those of a result, are replaced.
 *
 * @param {Record<string, any>} body
 * @param {(image: any) => boolean} isChanged
 * @param {(image: any) => Promise<any>} change
 * @returns {Promise<Record<string, any>>}
 */
async function changeImages(body, isChanged, change) {
  const all = (/** @type {any[]} */ images) =>
    Promise.all(images.map((image) => (isChanged(image) ? change(image) : image)));
  const { content, result } = body;
  const changed = { ...body };
  if (Array.isArray(content)) changed.content = await all(content);
  if (Array.isArray(result?.images)) changed.result = { ...result, images: await all(result.images) };
  return changed;
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
