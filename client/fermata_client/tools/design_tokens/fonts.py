"""`set_font_tokens`: set font stacks, and load fonts of Google Fonts."""

import re
from html import escape
from urllib.parse import quote_plus

from fermata_client.design_tokens.custom_properties import read_custom_properties
from fermata_client.design_tokens.font_variables import GENERIC_FONTS, font_stack, font_variable
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.service.json_types import JsonObject
from fermata_client.tools.arguments import (
    ToolArguments,
    optional_text,
    required_objects,
    required_text,
    required_texts,
)
from fermata_client.tools.design_tokens.property_changes import CustomPropertyChanges
from fermata_client.tools.tool_function import ToolEffectWithData

GOOGLE_FONTS_URL = "https://fonts.googleapis.com/css2"
DEFAULT_WEIGHT = "400"
GOOGLE_FONTS_NOTE = "The page loads the font from fonts.googleapis.com when it is opened."


def set_font_tokens(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    changes = CustomPropertyChanges()
    existing = read_custom_properties(document)
    reports: list[dict[str, str]] = []
    loaded_tokens: list[ToolArguments] = []
    for token in required_objects(arguments, "tokens"):
        name = required_text(token, "name")
        variable = font_variable(optional_text(token, "variable") or name)
        if not variable:
            raise EditError(f"There is no CSS name in “{name}”. Send a `variable` of letters, such as font-heading.")
        property_name = f"--{variable}"
        family = _google_family(token)
        fallback = optional_text(token, "fallback") or _generic_fallback(existing.get(property_name, ""))
        changes.light[property_name] = font_stack(family, fallback)
        action = "updated" if property_name in existing else "created"
        reports.append({"name": name, "variable": variable, "ref": f"var({property_name})", "action": action})
        if family:
            loaded_tokens.append(token)
    edited = _load_google_fonts(changes.apply_to(document), loaded_tokens)
    data: JsonObject = {"tokens": reports}
    if loaded_tokens:
        data["note"] = GOOGLE_FONTS_NOTE
    return edited, data


def _google_family(token: ToolArguments) -> str:
    """Return the font family to load from Google Fonts; empty for none."""
    family = optional_text(token, "googleFamily").strip()
    if not family and token.get("familyId"):
        raise EditError(
            "A file has no installed fonts. Send googleFamily, or a fallback of fonts that every system has."
        )
    if family and not re.fullmatch(r"[A-Za-z0-9 ]+", family):
        raise EditError(f"“{family}” is not the name of a Google font.")
    return family


def _generic_fallback(stack: str) -> str:
    """Return the generic family at the end of a stack, so that a serif font keeps a serif fallback."""
    last_name = stack.split(",")[-1].strip()
    return last_name if last_name in GENERIC_FONTS else ""


def _load_google_fonts(document: HtmlDocument, tokens: list[ToolArguments]) -> HtmlDocument:
    """Add the links that load the fonts, except those that the page has."""
    present = {element.attribute_value("href") for element in document.tree.elements if element.tag == "link"}
    addresses = dict.fromkeys(map(_google_fonts_address, tokens))
    links = [f'<link rel="stylesheet" href="{address}">'.encode() for address in addresses if address not in present]
    return document.with_head_element("link", links) if links else document


def _google_fonts_address(token: ToolArguments) -> str:
    """Return the address of a font's sheet, as an attribute holds it."""
    axes = _axes_parameter(required_texts(token, "variants")) if token.get("variants") else ""
    return escape(f"{GOOGLE_FONTS_URL}?family={quote_plus(_google_family(token))}{axes}&display=swap")


def _axes_parameter(variants: list[str]) -> str:
    """Convert variants to axes of a Google Fonts address: `["regular", "700italic"]` to `:ital,wght@0,400;1,700`."""
    axes = sorted({(int("italic" in variant), _weight_of(variant)) for variant in variants})
    if any(italic for italic, _ in axes):
        return ":ital,wght@" + ";".join(f"{italic},{weight}" for italic, weight in axes)
    return ":wght@" + ";".join(str(weight) for _, weight in axes)


def _weight_of(variant: str) -> int:
    digits = re.search(r"\d+", variant)
    return int(digits[0] if digits else DEFAULT_WEIGHT)
