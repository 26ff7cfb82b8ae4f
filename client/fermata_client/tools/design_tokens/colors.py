"""`set_color_tokens`: set colours and their variants."""

import re
from collections import ChainMap
from collections.abc import Mapping

from fermata_client.css.removal import remove_properties
from fermata_client.design_tokens.color_variants import parse_color
from fermata_client.design_tokens.custom_properties import DARK_SCHEME_QUERY, ROOT_SELECTORS, read_custom_properties
from fermata_client.design_tokens.font_variables import slugify
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.tools.arguments import ToolArguments, required_objects, required_text
from fermata_client.tools.design_tokens.property_changes import CustomPropertyChanges
from fermata_client.tools.tool_function import ToolEffectWithData

DEFAULT_SLUG = "color"

_VARIANT = re.compile(r"-(?:[dl]-)?\d+\Z")


def set_color_tokens(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    changes = CustomPropertyChanges()
    existing = read_custom_properties(document)
    light_only_names: set[str] = set()
    reports: list[dict[str, str]] = []
    for token in required_objects(arguments, "tokens"):
        slug = slugify(required_text(token, "slug"), DEFAULT_SLUG)
        name = f"--{slug}"
        light_value = _read_color(token, "lightValue")
        dark_value = _read_color(token, "darkValue") if token.get("darkValue") else ""
        is_new = name not in existing
        changes.light |= _derive_properties(name, light_value, existing)
        if dark_value and token.get("darkModeEnabled") is not False:
            changes.dark |= _derive_properties(
                name, dark_value, ChainMap(changes.light, existing) if is_new else existing
            )
        elif token.get("darkModeEnabled") is False:
            light_only_names.add(name)
        reports.append({"slug": slug, "ref": f"var({name})", "action": "created" if is_new else "updated"})
    return _remove_dark_values(changes.apply_to(document), light_only_names), {"tokens": reports}


def _derive_properties(name: str, value: str, existing: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a colour.

    A new colour gets all variants. An existing one keeps the variants it has; without any, it keeps its notation
    (decision 0123).
    """
    color = parse_color(value)
    variants = {f"{name}-{variant}": str(shade) for variant, shade in color.variants()} if color else {}
    if name in existing:
        variants = {variant: shade for variant, shade in variants.items() if variant in existing}
        return {name: str(color) if variants else value, **variants}
    return {name: str(color) if color else value, **variants}


def _remove_dark_values(document: HtmlDocument, names: set[str]) -> HtmlDocument:
    """Remove colours and their variants from the rules for dark screens."""
    dark_names = read_custom_properties(document, DARK_SCHEME_QUERY)
    removed = [name for name in dark_names if not {name, _VARIANT.sub("", name)}.isdisjoint(names)]
    if not removed:
        return document
    contents = [document.sheet_source(sheet) for sheet in document.writable_sheets]
    selectors = sorted(ROOT_SELECTORS)
    changed, _ = remove_properties(contents, selectors, removed, within=DARK_SCHEME_QUERY)
    return document.with_sheet_contents(changed)


def _read_color(token: ToolArguments, name: str) -> str:
    value = " ".join(required_text(token, name).split())
    if not value or re.search(r"[;{}<>\\]|/\*", value) or value.count("(") != value.count(")"):
        raise EditError(f"`{name}` must be one CSS colour, such as #2563eb or oklch(0.6 0.2 250), not “{value}”.")
    return value
