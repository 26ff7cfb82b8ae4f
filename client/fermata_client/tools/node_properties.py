"""`updateNodeProps`: set the text and the attributes of an element, as far as HTML defines them for it."""

from html import escape
from typing import Any

from fermata_client.document.breakpoints import BASE_BREAKPOINT
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.active_content import is_active_address
from fermata_client.html.attribute_edits import AttributeValue, attribute_splices
from fermata_client.html.edit_error import EditError
from fermata_client.html.splices import Splice
from fermata_client.html.tags import RAW_TEXT_TAGS, ROOT_TAG, name_set
from fermata_client.html.tree import Element
from fermata_client.tools.arguments import ToolArguments, optional_object, optional_text, required_text
from fermata_client.tools.tool_function import ToolEffect

GLOBAL_ATTRIBUTES = name_set("id title lang dir hidden tabindex role style translate inert popover")
FREE_ATTRIBUTE_PREFIXES = ("aria-", "data-")
TEXTLESS_TAGS = RAW_TEXT_TAGS - {"title", "textarea"}
"""Elements whose text is code, is not shown, or has no escaped characters."""
MEDIA_ATTRIBUTES = name_set("src controls autoplay muted loop preload crossorigin")
FORM_FIELD_ATTRIBUTES = name_set("name disabled required form autocomplete readonly placeholder")
TABLE_CELL_ATTRIBUTES = name_set("colspan rowspan headers")
ATTRIBUTES_BY_TAG: dict[str, frozenset[str]] = {
    "a": name_set("href target rel download hreflang type"),
    "area": name_set("href alt target rel shape coords download"),
    "audio": MEDIA_ATTRIBUTES,
    "blockquote": name_set("cite"),
    "body": frozenset(),
    "button": name_set("type name value disabled form popovertarget popovertargetaction"),
    "col": name_set("span"),
    "colgroup": name_set("span"),
    "data": name_set("value"),
    "del": name_set("cite datetime"),
    "details": name_set("open name"),
    "dialog": name_set("open"),
    "embed": name_set("src type width height"),
    "fieldset": name_set("disabled form name"),
    "form": name_set("action method name target autocomplete enctype novalidate rel"),
    "html": frozenset(),
    "iframe": name_set("src width height loading allow allowfullscreen name referrerpolicy"),
    "img": name_set(
        "src alt srcset sizes width height loading decoding fetchpriority crossorigin referrerpolicy usemap"
    ),
    "input": FORM_FIELD_ATTRIBUTES
    | name_set("type value checked min max step pattern minlength maxlength multiple accept list size src alt"),
    "ins": name_set("cite datetime"),
    "label": name_set("for"),
    "li": name_set("value"),
    "link": name_set("href rel media type sizes hreflang as crossorigin"),
    "meta": name_set("name content property charset"),
    "meter": name_set("value min max low high optimum"),
    "ol": name_set("start reversed type"),
    "optgroup": name_set("label disabled"),
    "option": name_set("value selected disabled label"),
    "output": name_set("for form name"),
    "progress": name_set("value max"),
    "q": name_set("cite"),
    "script": name_set("async defer type"),
    "select": FORM_FIELD_ATTRIBUTES | name_set("multiple size"),
    "source": name_set("src srcset media type sizes width height"),
    "style": name_set("media"),
    "svg": name_set("width height viewbox fill stroke preserveaspectratio"),
    "td": TABLE_CELL_ATTRIBUTES,
    "textarea": FORM_FIELD_ATTRIBUTES | name_set("rows cols minlength maxlength wrap spellcheck"),
    "th": TABLE_CELL_ATTRIBUTES | name_set("scope abbr"),
    "time": name_set("datetime"),
    "track": name_set("src kind srclang label default"),
    "video": MEDIA_ATTRIBUTES | name_set("width height poster playsinline"),
}
CASED_ATTRIBUTE_NAMES = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}


def update_node_props(document: HtmlDocument, arguments: ToolArguments) -> ToolEffect:
    _check_breakpoint(arguments)
    element = document.find_element(required_text(arguments, "nodeId"))
    patch = optional_object(arguments, "patch")
    if not patch:
        raise EditError(f"`patch` is empty. {_describe_properties(element)}")
    if element.tag == ROOT_TAG:
        raise EditError("The document itself has no properties. Choose an element in it.")
    splices = _text_splices(document.source, element, patch["text"]) if "text" in patch else []
    values = {
        CASED_ATTRIBUTE_NAMES.get(name.lower(), name): _check_value(document, element, name, value)
        for name, value in patch.items()
        if name != "text"
    }
    splices += attribute_splices(document.source, element, values)
    return document.with_splices(splices, element), None


def _check_breakpoint(arguments: ToolArguments) -> None:
    if optional_text(arguments, "breakpointId") not in ("", BASE_BREAKPOINT["id"]):
        raise EditError(
            "An HTML file has one set of properties for all widths. For other styles at a breakpoint, put a rule into "
            "a media query with applyCss; for another image use srcset or a <picture>."
        )


def _text_splices(source: bytes, element: Element, value: Any) -> list[Splice]:
    """Replace the text of an element, and keep the white space around it."""
    if not isinstance(value, str):
        raise EditError("`text` must be a text.")
    if element.is_void or element.tag in ("script", "style"):
        raise EditError(f"A <{element.tag}> has no text. {_describe_properties(element)}")
    if element.children:
        children = ", ".join(sorted({f"<{child.tag}>" for child in element.children}))
        raise EditError(
            f"There is {children} in this <{element.tag}>: use replaceNodeHtml, or the uid of what is in it."
        )
    old_text = source[element.inner_start : element.inner_end]
    start = element.inner_start + len(old_text) - len(old_text.lstrip())
    end = element.inner_end - (len(old_text) - len(old_text.rstrip()) if old_text.strip() else 0)
    return [Splice(start, end, escape(value, quote=False).encode("utf-8", "replace"))]


def _check_value(document: HtmlDocument, element: Element, argument_name: str, value: Any) -> AttributeValue:
    """Return the value to set, or raise `EditError` for an attribute that this tool does not set."""
    name = argument_name.lower()
    _check_not_for_other_tool(name)
    if not _is_settable(element, name):
        raise EditError(f"`{argument_name}` is not a property of a <{element.tag}>. {_describe_properties(element)}")
    if value is True and name.startswith("aria-"):
        return "true"
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        raise EditError(f"`{argument_name}` must be a text, a number, true, false or null.")
    text = str(value)
    _check_address(element.tag, name, text)
    if name == "id":
        _check_id(document, element, text)
    return text


def _check_not_for_other_tool(name: str) -> None:
    if name.startswith("on"):
        raise EditError(f"`{name}` would be code in the page. Write behaviour with write_code_asset.")
    if name in ("class", "classname", "classes"):
        raise EditError("Classes are set with assignClass and removed with removeClass.")
    if name == "uid":
        raise EditError("A uid names a node for as long as you work on it; it cannot be set.")
    if name in ("html", "innerhtml", "children"):
        raise EditError("The content of a node is rebuilt with replaceNodeHtml.")


def _is_settable(element: Element, name: str) -> bool:
    if not name or any(character in name for character in " \t\r\n\"'<>/="):
        return False
    return (
        name in GLOBAL_ATTRIBUTES
        or name in ATTRIBUTES_BY_TAG.get(element.tag, ())
        or (name.startswith(FREE_ATTRIBUTE_PREFIXES) and name[-1] != "-")
    )


def _check_address(tag: str, name: str, value: str) -> None:
    if not is_active_address(tag, name, value):
        return
    if "".join(value.split()).lower().startswith("data:"):
        raise EditError(f"`{name}` of a <{tag}> must be an address; only pictures may be given as data.")
    raise EditError(f"`{name}` must be an address, not code. Write behaviour with write_code_asset.")


def _check_id(document: HtmlDocument, element: Element, value: str) -> None:
    if not value or value.split() != [value]:
        raise EditError("`id` must be a text without white space.")
    owners = (other for other in document.tree.elements if other.attribute_value("id") == value)
    other = next((owner for owner in owners if owner.uid != element.uid), None)
    if other:
        raise EditError(
            f"The id “{value}” is taken by the <{other.tag}> with uid {other.uid}. An id occurs only once on a page."
        )


def _describe_properties(element: Element) -> str:
    """Return a sentence with the properties that can be set, for a model that guessed one."""
    own_names = sorted(CASED_ATTRIBUTE_NAMES.get(name, name) for name in ATTRIBUTES_BY_TAG.get(element.tag, ()))
    holds_text = not (element.is_void or element.children or element.tag in TEXTLESS_TAGS)
    text_name = ["text"] if holds_text else []
    listed = ", ".join([*text_name, *own_names, *sorted(GLOBAL_ATTRIBUTES), "aria-*", "data-*"])
    return f"A <{element.tag}> takes: {listed}. Colours and sizes are CSS: use applyCss."
