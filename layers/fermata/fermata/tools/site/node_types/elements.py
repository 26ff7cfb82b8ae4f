"""List node types other than form elements, with the editor's ids, props, choices and defaults (decision 0104)."""

from typing import Any

from fermata.tools.site.node_types.definition import DISABLED_CONTROL, NodeType, PropControl

_ATTRIBUTES: dict[str, Any] = {"htmlAttributes": {}}
_TARGETS = {"_self": "Same tab", "_blank": "New tab", "_parent": "Parent frame"}
_TAGS = {tag: tag for tag in ("div", "section", "article", "main", "header", "footer", "nav", "aside", "ul", "ol")}
_TAGS["custom"] = "Custom"
_TEXT_TAGS = {
    "p": "Paragraph",
    "none": "No element",
    **{f"h{level}": f"Heading {level}" for level in range(1, 7)},
    "span": "Span",
    "div": "Div",
    "small": "Small",
    "strong": "Strong",
    "em": "Emphasis",
}


def _make_tag_props(default: str) -> dict[str, PropControl]:
    return {
        "tag": ("select", "HTML element", default, _TAGS),
        "customTag": ("text", "Element name, where `tag` is custom", ""),
    }


_SLOT: dict[str, PropControl] = {"slotName": ("text", "Name of the slot", "children")}

ELEMENTS: dict[str, NodeType] = {
    "base.button": NodeType(
        name="Button",
        category="Interactive",
        description="A button, or a link that looks like one where `href` is set.",
        props={
            "label": ("text", "Label", "Get Started"),
            "href": ("url", "Link", ""),
            "target": ("select", "Opens in", "_self", _TARGETS),
            "disabled": DISABLED_CONTROL,
        },
        unlisted=_ATTRIBUTES,
    ),
    "base.container": NodeType(
        name="Container",
        category="Layout",
        description="An element that holds others: a section, an article, a plain box.",
        props=_make_tag_props("div"),
        can_have_children=True,
        unlisted=_ATTRIBUTES,
    ),
    "base.image": NodeType(
        name="Image",
        category="Media",
        description="A picture from the media library or from an address; its alt text is kept in the library.",
        props={
            "src": ("image", "Picture", ""),
            "loading": ("select", "Loading", "lazy", {"lazy": "When near", "eager": "At once"}),
            "fetchPriority": ("select", "Priority", "auto", {"auto": "Auto", "high": "High", "low": "Low"}),
            "decoding": ("select", "Decoding", "async", {"async": "Async", "sync": "Sync", "auto": "Auto"}),
        },
        unlisted=_ATTRIBUTES,
    ),
    "base.link": NodeType(
        name="Link",
        category="Interactive",
        description="A link around its children, or around `text` where it has none.",
        props={
            "href": ("url", "Address", "#"),
            "text": ("text", "Text without children", "Click here"),
            "target": ("select", "Opens in", "_self", _TARGETS),
        },
        can_have_children=True,
        unlisted=_ATTRIBUTES,
    ),
    "base.list": NodeType(
        name="List",
        category="Typography",
        description="A list of plain texts, with bullets or numbers.",
        props={
            "items": ("textarea", "One item a line", ""),
            "listType": ("select", "Kind", "unordered", {"unordered": "Bullets", "ordered": "Numbers"}),
        },
    ),
    "base.loop": NodeType(
        name="Loop",
        category="Layout",
        description="Repeats its children for each entry of a source, in turn where it has several.",
        can_have_children=True,
        unlisted={
            "sourceId": "",
            "filters": {},
            "orderBy": "",
            "direction": "desc",
            "limit": 10,
            "offset": 0,
            "pagination": "none",
            "pageSize": 10,
            "tag": "div",
            "customTag": "",
        },
    ),
    "base.outlet": NodeType(
        name="Content outlet",
        category="CMS",
        description="Where a template shows the page or the entry it is for.",
        props={**_make_tag_props("main"), "html": ("richtextBody", "Content, filled in when published", "")},
    ),
    "base.slot-instance": NodeType(
        name="Slot",
        category="Components",
        description="What a page puts into a slot of a component; the editor makes it, and its children are yours.",
        props=_SLOT,
        can_have_children=True,
    ),
    "base.slot-outlet": NodeType(
        name="Slot",
        category="Components",
        description="The place inside a component's definition where a page may put something.",
        props=_SLOT,
    ),
    "base.svg": NodeType(
        name="SVG",
        category="Media",
        description="A drawing in the page itself, such as a logo or an icon.",
        props={"svg": ("svg", "SVG markup", ""), "title": ("text", "What it shows, for screen readers", "")},
    ),
    "base.text": NodeType(
        name="Text",
        category="Typography",
        description="A heading, a paragraph or a few words.",
        props={
            "text": ("textarea", "Text", "Add your text here."),
            "tag": ("select", "Element", "p", _TEXT_TAGS),
        },
        unlisted=_ATTRIBUTES,
    ),
    "base.video": NodeType(
        name="Video",
        category="Media",
        description="A video from the media library, from an address, or from YouTube.",
        props={
            "videoUrl": ("media", "Video", ""),
            "poster": ("image", "Picture before it starts", ""),
            "autoplay": ("toggle", "Starts by itself", False),
            "loop": ("toggle", "Starts again", False),
            "muted": ("toggle", "Muted", False),
            "controls": ("toggle", "Controls", True),
            "playsinline": ("toggle", "Stays in the page on phones", True),
            "preload": ("select", "Preload", "metadata", {"none": "Nothing", "metadata": "Metadata", "auto": "Auto"}),
        },
    ),
    "base.visual-component-ref": NodeType(
        name="Component",
        category="Components",
        description="A visual component in use, with its own values for the component's parameters.",
        can_have_children=True,
        unlisted={"componentId": "", "propOverrides": {}},
    ),
}
