/** Know the attributes of HTML: how each is written, and which of them a tool may set. */

/** @param {string} names */
const nameSet = (names) => new Set(names.split(" ").filter(Boolean));

const GLOBAL_ATTRIBUTES = nameSet("id title lang dir hidden tabindex role style translate inert popover");
const MEDIA = "src controls autoplay muted loop preload crossorigin";
const FORM_FIELD = "name disabled required form autocomplete readonly placeholder";
const TABLE_CELL = "colspan rowspan headers";
const ATTRIBUTES_BY_TAG = new Map(
  Object.entries({
    a: "href target rel download hreflang type",
    area: "href alt target rel shape coords download",
    audio: MEDIA,
    blockquote: "cite",
    button: "type name value disabled form popovertarget popovertargetaction",
    col: "span",
    colgroup: "span",
    data: "value",
    del: "cite datetime",
    details: "open name",
    dialog: "open",
    embed: "src type width height",
    fieldset: "disabled form name",
    form: "action method name target autocomplete enctype novalidate rel",
    iframe: "src width height loading allow allowfullscreen name referrerpolicy",
    img: "src alt srcset sizes width height loading decoding fetchpriority crossorigin referrerpolicy usemap",
    input: `${FORM_FIELD} type value checked min max step pattern minlength maxlength multiple accept list size src alt`,
    ins: "cite datetime",
    label: "for",
    li: "value",
    link: "href rel media type sizes hreflang as crossorigin",
    meta: "name content property charset",
    meter: "value min max low high optimum",
    ol: "start reversed type",
    optgroup: "label disabled",
    option: "value selected disabled label",
    output: "for form name",
    progress: "value max",
    q: "cite",
    script: "async defer type",
    select: `${FORM_FIELD} multiple size`,
    source: "src srcset media type sizes width height",
    style: "media",
    svg: "width height viewbox fill stroke preserveaspectratio",
    td: TABLE_CELL,
    textarea: `${FORM_FIELD} rows cols minlength maxlength wrap spellcheck`,
    th: `${TABLE_CELL} scope abbr`,
    time: "datetime",
    track: "src kind srclang label default",
    video: `${MEDIA} width height poster playsinline`,
  }).map(([tag, names]) => [tag, nameSet(names)]),
);
/** @type {Record<string, string>} */
const CASED_NAMES = { viewbox: "viewBox", preserveaspectratio: "preserveAspectRatio" };

/**
 * Return an attribute's name as HTML writes it.
 * @param {string} name
 */
export function casedAttributeName(name) {
  return CASED_NAMES[name.toLowerCase()] ?? name;
}

/**
 * Tell whether HTML defines an attribute for an element.
 * @param {string} tag
 * @param {string} name in lower case
 */
export function isSettableAttribute(tag, name) {
  if (!name || /[\s"'<>/=]/.test(name)) return false;
  if (name.startsWith("data-gjs-")) return false;
  const isFree = /^(?:aria|data)-/.test(name) && !name.endsWith("-");
  return GLOBAL_ATTRIBUTES.has(name) || Boolean(ATTRIBUTES_BY_TAG.get(tag)?.has(name)) || isFree;
}

/**
 * Return a sentence with the properties that can be set, for a model that guessed one.
 * @param {string} tag
 * @param {boolean} holdsText
 */
export function describeAttributes(tag, holdsText) {
  const own = [...(ATTRIBUTES_BY_TAG.get(tag) ?? [])].map(casedAttributeName).sort();
  const listed = [...(holdsText ? ["text"] : []), ...own, ...[...GLOBAL_ATTRIBUTES].sort(), "aria-*", "data-*"];
  return `A <${tag}> takes: ${listed.join(", ")}. Colours and sizes are CSS: use applyCss.`;
}
