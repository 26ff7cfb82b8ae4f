"""Attributes of a start tag, set and taken away by position."""

from fermata_client.html.indentation import WHITESPACE, Splice
from fermata_client.html.tree import Attribute, Element

AttributeValue = str | bool
"""A text; True for an attribute that is just there, False for none."""


def attribute_splices(source: bytes, element: Element, values: dict[str, AttributeValue]) -> list[Splice]:
    """The splices that give the element these attributes. The rest of the tag stays as it is written."""
    splices, added = [], b""
    for name, value in values.items():
        there = next((a for a in element.attributes if a.name == name.lower()), None)
        if there is None:
            added += b" " + _written(name, value) if value is not False else b""
        elif value is False:
            splices.append(_removal(source, there))
        else:
            own_name = source[there.start : there.start + len(there.name.encode())].decode()
            splices.append(Splice(there.start, there.end, _written(own_name, value, _quote(source, there))))
    at = max((a.end for a in element.attributes), default=element.name_end)
    return [*splices, *([Splice(at, at, added)] if added else [])]


def _written(name: str, value: AttributeValue, quote: str = '"') -> bytes:
    if value is True:
        return name.encode()
    text = str(value).replace("&", "&amp;").replace(quote, "&quot;" if quote == '"' else "&#39;")
    return f"{name}={quote}{text}{quote}".encode("utf-8", "replace")


def _quote(source: bytes, attribute: Attribute) -> str:
    return "'" if source[attribute.end - 1 : attribute.end] == b"'" else '"'


def _removal(source: bytes, attribute: Attribute) -> Splice:
    """With the white space in front of it."""
    start = len(source[: attribute.start].rstrip(WHITESPACE))
    return Splice(start, attribute.end, b"")
