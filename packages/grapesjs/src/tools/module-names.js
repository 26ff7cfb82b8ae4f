/** The site editor's module that an element corresponds to; any other is a container. */
export const MODULE_BY_TAG = new Map([
  ["a", "base.link"],
  ["button", "base.button"],
  ["form", "base.form"],
  ["img", "base.image"],
  ["input", "base.input"],
  ["label", "base.label"],
  ["ol", "base.list"],
  ["option", "base.option"],
  ["select", "base.select"],
  ["svg", "base.svg"],
  ["textarea", "base.textarea"],
  ["ul", "base.list"],
  ["video", "base.video"],
  ...["h1", "h2", "h3", "h4", "h5", "h6", "p", "span", "strong", "em", "small", "blockquote"].map(
    (tag) => /** @type {[string, string]} */ ([tag, "base.text"]),
  ),
]);
