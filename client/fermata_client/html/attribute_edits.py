"""Compute the splices that set and remove attributes of a start tag."""

import re

from fermata_client.html.indentation import WHITESPACE
from fermata_client.html.splices import Splice
from fermata_client.html.template_preamble import TEMPLATE_CODE
from fermata_client.html.tree import Attribute, Element

AttributeValue = str | bool
"""A text; True for an attribute without a value, False for no attribute."""


def attribute_splices(source: bytes, element: Element, values: dict[str, AttributeValue]) -> list[Splice]:
    """Return the splices that set attributes of an element. The rest of the tag keeps its bytes."""
    splices: list[Splice] = []
    added = b""
    for name, value in values.items():
        attribute = next((own for own in element.attributes if own.name == name.lower()), None)
        if attribute is None:
            added += b" " + _format_attribute(name, value) if value is not False else b""
        elif value is False:
            splices.append(_removal_splice(source, attribute))
        else:
            written_name = source[attribute.start : attribute.start + len(attribute.name.encode())].decode()
            text = _format_attribute(written_name, value, _quote_of(source, attribute))
            splices.append(Splice(attribute.start, attribute.end, text))
    if added:
        end = max((attribute.end for attribute in element.attributes), default=element.name_end)
        splices.append(Splice(end, end, added))
    return splices


def _format_attribute(name: str, value: AttributeValue, quote: str = '"') -> bytes:
    if value is True:
        return name.encode()
    pieces = re.split(f"({TEMPLATE_CODE.decode()})", str(value), flags=re.DOTALL)
    text = "".join(piece if number % 2 else _escape(piece, quote) for number, piece in enumerate(pieces))
    return f"{name}={quote}{text}{quote}".encode("utf-8", "replace")


def _escape(text: str, quote: str) -> str:
    return text.replace("&", "&amp;").replace(quote, "&quot;" if quote == '"' else "&#39;")


def _quote_of(source: bytes, attribute: Attribute) -> str:
    return "'" if source[attribute.end - 1 : attribute.end] == b"'" else '"'


def _removal_splice(source: bytes, attribute: Attribute) -> Splice:
    """Remove the attribute and the white space before it."""
    start = len(source[: attribute.start].rstrip(WHITESPACE))
    return Splice(start, attribute.end, b"")
