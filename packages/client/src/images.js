/** Images of a prompt, as the service takes them. */

/** @import { PromptImage } from "./types.js" */

const CHUNK = 0x8000;

/**
 * Return the parts of a prompt's content that show these images.
 *
 * @param {PromptImage[]} images
 */
export function imageParts(images) {
  return Promise.all(
    images.map(async (image) => {
      if (image instanceof Blob) {
        const bytes = new Uint8Array(await image.arrayBuffer());
        return { kind: "image", mimeType: image.type, data: toBase64(bytes) };
      }
      const { mimeType, data } = image;
      return { kind: "image", mimeType, data: typeof data === "string" ? data : toBase64(data) };
    }),
  );
}

/** @param {Uint8Array} bytes */
function toBase64(bytes) {
  let text = "";
  for (let start = 0; start < bytes.length; start += CHUNK) {
    text += String.fromCharCode(...bytes.subarray(start, start + CHUNK));
  }
  return btoa(text);
}
