/** Know what in HTML runs code: attributes, addresses and elements. */

/** @param {string} names */
const nameSet = (names) => new Set(names.split(" "));

/** Attributes whose value may be an address; in SVG animations, the value for another attribute. */
const ADDRESS_ATTRIBUTES = nameSet(
  "href src action formaction xlink:href data to from by values poster srcset ping cite background manifest codebase",
);
/** Elements that show an attribute's address as an image, so that nothing in it runs. */
const IMAGE_TAGS_BY_ATTRIBUTE = new Map([
  ["src", nameSet("img input source")],
  ["srcset", nameSet("img source")],
  ["poster", nameSet("video")],
  ["href", nameSet("image feimage")],
  ["xlink:href", nameSet("image feimage")],
]);
const ANIMATION_TAGS = nameSet("set animate animatetransform animatemotion");
const MULTIPLE_VALUE_ATTRIBUTES = nameSet("values from to by");
/** Elements whose content is text or markup, depending on the browser and on the elements around them. */
const AMBIGUOUS_TEXT_TAGS = nameSet("style xmp iframe noembed noframes plaintext noscript");

const AMBIGUOUS_SELECTOR = [...AMBIGUOUS_TEXT_TAGS].join(",");

/**
 * Tell whether an element as a whole runs, redirects, or moves the addresses of others.
 * @param {Element} element
 */
function isActiveElement(element) {
  const tag = element.localName.toLowerCase();
  const isRefresh = tag === "meta" && element.getAttribute("http-equiv")?.trim().toLowerCase() === "refresh";
  return tag === "script" || tag === "base" || isRefresh;
}

/**
 * Tell whether an attribute is code, or makes a component of GrapesJS run some (decision 0273).
 * @param {string} tag in lower case
 * @param {string} name in lower case
 * @param {string} value
 */
export function isActiveAttribute(tag, name, value) {
  if (name.startsWith("on") || name === "srcdoc" || name.startsWith("data-gjs-")) return true;
  if (ANIMATION_TAGS.has(tag) && name === "attributename" && value.trim().toLowerCase().startsWith("on")) return true;
  return isActiveAddress(tag, name, value);
}

/**
 * Tell whether a value is code, or a `data:` document that is not shown as an image. Browsers ignore white space and
 * control characters in it.
 * @param {string} tag in lower case
 * @param {string} name in lower case
 * @param {string} value
 */
export function isActiveAddress(tag, name, value) {
  if (!ADDRESS_ATTRIBUTES.has(name)) return false;
  const addresses = MULTIPLE_VALUE_ATTRIBUTES.has(name) ? value.split(";") : [value];
  if (name === "srcset") addresses.push(...value.split(/[\s,]+(?=[A-Za-z]+:)/));
  return addresses.some((address) => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: browsers skip them in addresses
    const plain = address.replace(/[\u0000-\u0020]/g, "").toLowerCase();
    if (/^(javascript|vbscript):/.test(plain)) return true;
    const isImage = plain.startsWith("data:image/") && IMAGE_TAGS_BY_ATTRIBUTE.get(name)?.has(tag);
    return plain.startsWith("data:") && !isImage;
  });
}

/**
 * Remove what a browser would run, and what redirects or loads documents, also within templates.
 * @param {DocumentFragment} root
 * @returns {string[]} names of what was removed: tags and attributes, one for each
 */
export function removeActiveContent(root) {
  /** @type {string[]} */
  const removed = [];
  for (const element of root.querySelectorAll("*")) {
    const name = activeElementName(element);
    if (name) {
      removed.push(name);
      element.remove();
      continue;
    }
    removed.push(...removeActiveAttributes(element));
    if (element instanceof HTMLTemplateElement) removed.push(...removeActiveContent(element.content));
    else if (element.localName === "template") removed.push(...removeActiveContent(templateContent(element)));
  }
  return removed;
}

/** @param {Element} element */
function templateContent(element) {
  return /** @type {HTMLTemplateElement} */ (element).content ?? document.createDocumentFragment();
}

/** @param {Element} element */
function activeElementName(element) {
  const tag = element.localName.toLowerCase();
  if (isActiveElement(element)) return tag;
  // what is within another such element was read with it
  const isOutermost = AMBIGUOUS_TEXT_TAGS.has(tag) && !element.parentElement?.closest(AMBIGUOUS_SELECTOR);
  return isOutermost && hidesActiveContent(element) ? tag : "";
}

/**
 * Tell whether the content of an element holds code for a browser that reads it as markup, or that ends it early.
 * @param {Element} element
 */
function hidesActiveContent(element) {
  const text = element.children.length ? element.innerHTML : (element.textContent ?? "");
  if (!text.includes("<")) return false;
  const end = new RegExp(`</${element.localName}`, "i");
  const inner = [...element.querySelectorAll("*")].flatMap((one) => [...one.attributes]);
  if (inner.some(({ value }) => end.test(value)) || (element.children.length && end.test(text))) return true;
  const template = document.createElement("template");
  template.innerHTML = text;
  return removeActiveContent(template.content).length > 0;
}

/** @param {Element} element */
function removeActiveAttributes(element) {
  const removed = [];
  for (const { name, value } of [...element.attributes]) {
    const lower = name.toLowerCase();
    if (lower === "uid") element.removeAttribute(name);
    else if (isActiveAttribute(element.localName.toLowerCase(), lower, value)) {
      removed.push(lower);
      element.removeAttribute(name);
    }
  }
  return removed;
}
