"""`updateNodeProps`: the words and attributes of one element. Each element takes what HTML gives it to say, no more."""

from html import escape
from typing import Any

from fermata_client.editing import given as read
from fermata_client.editing.given import Given
from fermata_client.html.attributes import Value, setting
from fermata_client.html.cannot import CannotDo
from fermata_client.html.layout import Splice
from fermata_client.html.live import is_live_address
from fermata_client.html.tree import RAW, ROOT, Element, names
from fermata_client.html_document import HtmlDocument

EVERYWHERE = names("id title lang dir hidden tabindex role style translate inert popover")
FREE_PREFIXES = ("aria-", "data-")
MEDIA = names("src controls autoplay muted loop preload crossorigin")
FIELD = names("name disabled required form autocomplete readonly placeholder")
CELL = names("colspan rowspan headers")
TAKES: dict[str, frozenset[str]] = {
    "a": names("href target rel download hreflang type"),
    "area": names("href alt target rel shape coords download"),
    "audio": MEDIA,
    "blockquote": names("cite"),
    "body": frozenset(),
    "button": names("type name value disabled form popovertarget popovertargetaction"),
    "col": names("span"),
    "colgroup": names("span"),
    "data": names("value"),
    "del": names("cite datetime"),
    "details": names("open name"),
    "dialog": names("open"),
    "embed": names("src type width height"),
    "fieldset": names("disabled form name"),
    "form": names("action method name target autocomplete enctype novalidate rel"),
    "html": frozenset(),
    "iframe": names("src width height loading allow allowfullscreen name referrerpolicy"),
    "img": names("src alt srcset sizes width height loading decoding fetchpriority crossorigin referrerpolicy usemap"),
    "input": FIELD
    | names("type value checked min max step pattern minlength maxlength multiple accept list size src alt"),
    "ins": names("cite datetime"),
    "label": names("for"),
    "li": names("value"),
    "link": names("href rel media type sizes hreflang as crossorigin"),
    "meta": names("name content property charset"),
    "meter": names("value min max low high optimum"),
    "ol": names("start reversed type"),
    "optgroup": names("label disabled"),
    "option": names("value selected disabled label"),
    "output": names("for form name"),
    "progress": names("value max"),
    "q": names("cite"),
    "script": names("async defer type"),
    "select": FIELD | names("multiple size"),
    "source": names("src srcset media type sizes width height"),
    "style": names("media"),
    "svg": names("width height viewbox fill stroke preserveaspectratio"),
    "td": CELL,
    "textarea": FIELD | names("rows cols minlength maxlength wrap spellcheck"),
    "th": CELL | names("scope abbr"),
    "time": names("datetime"),
    "track": names("src kind srclang label default"),
    "video": MEDIA | names("width height poster playsinline"),
}
WRITTEN = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}


def update_props(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    _refuse_breakpoint(given)
    element = document.element(read.text(given, "nodeId"))
    patch = read.members(given, "patch")
    if not patch:
        raise CannotDo(f"`patch` is empty. {_list_of(element)}")
    if element.tag == ROOT:
        raise CannotDo("The document itself has no properties. Choose an element in it.")
    values = dict(patch)
    splices = _text(document.source, element, values.pop("text")) if "text" in values else []
    checked = {
        WRITTEN.get(name.lower(), name): _checked(document, element, name, value) for name, value in values.items()
    }
    splices += setting(document.source, element, checked)
    return document.edited(splices, element), None


def _refuse_breakpoint(given: Given) -> None:
    if read.optional_text(given, "breakpointId") not in ("", "all"):
        raise CannotDo(
            "An HTML file has one set of properties for all widths. For another look at a breakpoint put a rule into a "
            "media query with applyCss; for another picture use srcset or a <picture>."
        )


def _text(source: bytes, element: Element, value: Any) -> list[Splice]:
    if not isinstance(value, str):
        raise CannotDo("`text` must be a text.")
    if element.is_void or element.tag in ("script", "style"):
        raise CannotDo(f"A <{element.tag}> has no text. {_list_of(element)}")
    if element.children:
        inside = ", ".join(sorted({f"<{child.tag}>" for child in element.children}))
        raise CannotDo(f"There is {inside} in this <{element.tag}>: use replaceNodeHtml, or the uid of what is in it.")
    old = source[element.inner_start : element.inner_end]
    lead, tail = len(old) - len(old.lstrip()), len(old) - len(old.rstrip()) if old.strip() else 0
    new = escape(value, quote=False).encode("utf-8", "replace")
    return [Splice(element.inner_start + lead, element.inner_end - tail, new)]


def _checked(document: HtmlDocument, element: Element, given_name: str, value: Any) -> Value:
    name = given_name.lower()
    _refuse_others_work(name)
    if not _takes(element, name):
        raise CannotDo(f"`{given_name}` is not a property of a <{element.tag}>. {_list_of(element)}")
    if value is None or isinstance(value, bool):
        return "true" if value and name.startswith("aria-") else bool(value) if value is not None else False
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        raise CannotDo(f"`{given_name}` must be a text, a number, true, false or null.")
    text = str(value)
    _check_address(element.tag, name, text)
    if name == "id":
        _check_id(document, element, text)
    return text


def _refuse_others_work(name: str) -> None:
    if name.startswith("on"):
        raise CannotDo(f"`{name}` would be code in the page. Write behaviour with write_code_asset.")
    if name in ("class", "classname", "classes"):
        raise CannotDo("Classes are set with assignClass and taken away with removeClass.")
    if name == "uid":
        raise CannotDo("A uid names a node for as long as you work on it; it cannot be set.")
    if name in ("html", "innerhtml", "children"):
        raise CannotDo("The content of a node is rebuilt with replaceNodeHtml.")


def _takes(element: Element, name: str) -> bool:
    if not name or any(character in name for character in " \t\r\n\"'<>/="):
        return False
    return (
        name in EVERYWHERE or name in TAKES.get(element.tag, ()) or (name.startswith(FREE_PREFIXES) and name[-1] != "-")
    )


def _check_address(tag: str, name: str, value: str) -> None:
    if not is_live_address(tag, name, value):
        return
    if "".join(value.split()).lower().startswith("data:"):
        raise CannotDo(f"`{name}` of a <{tag}> must be an address; only pictures may be given as data.")
    raise CannotDo(f"`{name}` must be an address, not code. Write behaviour with write_code_asset.")


def _check_id(document: HtmlDocument, element: Element, value: str) -> None:
    if not value or value.split() != [value]:
        raise CannotDo("`id` must be a text without white space.")
    other = next((e for e in document.page.elements if e.attribute("id") == value and e.uid != element.uid), None)
    if other:
        raise CannotDo(
            f"The id “{value}” is taken by the <{other.tag}> with uid {other.uid}. An id stands once on a page."
        )


def _list_of(element: Element) -> str:
    """What can be set here, for a model that guessed."""
    own = sorted(WRITTEN.get(name, name) for name in TAKES.get(element.tag, ()))
    holds_text = not (element.is_void or element.children or element.tag in RAW - {"title", "textarea"})
    listed = ", ".join([*(["text"] if holds_text else []), *own, *sorted(EVERYWHERE), "aria-*", "data-*"])
    return f"A <{element.tag}> takes: {listed}. Looks (colours, sizes) are CSS: use applyCss."
