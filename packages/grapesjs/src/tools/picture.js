/** Take a picture of the canvas. */

const MAX_EDGE = 1568;
const MAX_AREA = 1_500_000;
const QUALITY = 0.8;

/**
 * @typedef {object} Picture
 * @property {{status: string, width?: number, height?: number, note?: string, error?: string}} report
 * @property {{mimeType: string, data: string}} [image]
 */

/**
 * Draw an element of the canvas as a picture. Images and linked fonts are not in it: a browser draws no outside files
 * into it.
 * @param {HTMLElement} element
 * @param {number} imageCount of images in the element
 * @returns {Promise<Picture>}
 */
export async function takePicture(element, imageCount) {
  const page = element.ownerDocument;
  const view = /** @type {Window} */ (page.defaultView);
  const width = Math.max(1, Math.ceil(element.scrollWidth || view.innerWidth));
  const height = Math.max(1, Math.ceil(element.scrollHeight || view.innerHeight));
  const scale = Math.min(1, MAX_EDGE / width, MAX_EDGE / height, Math.sqrt(MAX_AREA / (width * height)));
  const size = { width: Math.max(1, Math.floor(width * scale)), height: Math.max(1, Math.floor(height * scale)) };
  try {
    const drawn = await drawSvg(svgOf(element, width, height), size);
    const note = imageCount ? { note: `${imageCount} images are left blank in the picture.` } : {};
    return { report: { status: "captured", ...size, ...note }, image: { mimeType: "image/jpeg", data: drawn } };
  } catch (error) {
    return {
      report: { status: "unavailable", error: `The browser drew no picture: ${/** @type {Error} */ (error).message}` },
    };
  }
}

/**
 * @param {HTMLElement} element
 * @param {number} width
 * @param {number} height
 */
function svgOf(element, width, height) {
  const page = element.ownerDocument;
  const root = page.createElement("div");
  root.setAttribute("xmlns", "http://www.w3.org/1999/xhtml");
  for (const style of page.querySelectorAll("style")) root.append(style.cloneNode(true));
  const copy = /** @type {HTMLElement} */ (element.cloneNode(true));
  for (const image of copy.querySelectorAll("img, source, video, iframe, script, link")) {
    for (const name of ["src", "srcset", "href", "poster"]) image.removeAttribute(name);
  }
  root.append(copy);
  const content = new XMLSerializer().serializeToString(root);
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">` +
    `<foreignObject width="100%" height="100%">${content}</foreignObject></svg>`
  );
}

/**
 * @param {string} svg
 * @param {{width: number, height: number}} size
 * @returns {Promise<string>} JPEG in base64
 */
async function drawSvg(svg, { width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(image, 0, 0, width, height);
  return canvas.toDataURL("image/jpeg", QUALITY).split(",")[1];
}
