/** Read the tree of components: members, children, ancestors, texts and classes. */

/** @typedef {any} Component A component of GrapesJS, whose package is not a dependency. */

const VIDEO_MEMBERS = ["loop", "autoplay", "controls", "muted"];

/**
 * Tell whether GrapesJS keeps an attribute as a member of the component, which hides the attribute itself.
 * @param {Component} component
 * @param {string} name
 */
export function isMember(component, name) {
  const { attributes } = component;
  if (name === "src") return "src" in attributes;
  return attributes.type === "video" && VIDEO_MEMBERS.includes(name);
}

/** @param {Component} component */
export function isTextNode(component) {
  const type = component.attributes.type;
  return type === "textnode" || type === "comment";
}

/**
 * @param {Component} component
 * @returns {Component[]} the children that are elements
 */
export function elementsIn(component) {
  return childrenOf(component).filter((child) => !isTextNode(child));
}

/**
 * @param {Component} component
 * @returns {Component[]}
 */
export function childrenOf(component) {
  return component.attributes.components?.models ?? [];
}

/**
 * Call a function with a component and all within it, the outer ones first.
 * @param {Component} component
 * @param {(component: Component) => void} visit
 */
export function walk(component, visit) {
  visit(component);
  for (const child of childrenOf(component)) walk(child, visit);
}

/** @param {Component} component */
export function tagOf(component) {
  return component.attributes.type === "wrapper" ? "body" : String(component.attributes.tagName || "div").toLowerCase();
}

/**
 * @param {Component} component
 * @returns {Component[]} from the parent outwards
 */
export function ancestorsOf(component) {
  const found = [];
  for (let outer = component.parent(); outer; outer = outer.parent()) found.push(outer);
  return found;
}

/**
 * @param {Component} outer
 * @param {Component} inner
 */
export function isWithin(outer, inner) {
  return outer === inner || ancestorsOf(inner).includes(outer);
}

/**
 * Return the text of a component as the model has it, which is old while a user types.
 * @param {Component} component
 * @returns {string}
 */
export function textOf(component) {
  const { type, content = "" } = component.attributes;
  if (type === "comment") return "";
  return type === "textnode" ? content : content + childrenOf(component).map(textOf).join("");
}

/**
 * Return JSON from which the editor makes the same component again.
 * @param {Component} component
 */
export function jsonOf(component) {
  return JSON.parse(JSON.stringify(component));
}

/**
 * @param {Component} component
 * @returns {string[]}
 */
export function classesOf(component) {
  return component.attributes.classes.models.map((/** @type {any} */ one) => one.attributes.name);
}

/**
 * Return the index among all children for one among the child elements.
 * @param {Component} parent
 * @param {number | undefined} index
 */
export function childIndex(parent, index) {
  const elements = elementsIn(parent);
  if (index === undefined || index >= elements.length) return childrenOf(parent).length;
  return childrenOf(parent).indexOf(elements[index]);
}
