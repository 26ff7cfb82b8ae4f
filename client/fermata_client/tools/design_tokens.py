"""`set_color_tokens` and its like: design tokens as custom properties of the page's root element."""

import re
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any
from urllib.parse import quote_plus

from fermata_client.css.removal import remove_properties
from fermata_client.design_tokens import derivation
from fermata_client.design_tokens.custom_properties import (
    DARK_SCHEME_QUERY,
    PageScale,
    defining_selector,
    find_scales,
    read_custom_properties,
    root_font_pixels,
)
from fermata_client.design_tokens.derivation import DEFAULT_SPACING_SCALE, DEFAULT_TYPE_SCALE, TokenScale
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.errors import EditError
from fermata_client.tools.arguments import (
    ToolArguments,
    optional_integer,
    optional_number,
    optional_object,
    optional_text,
    required_objects,
    required_text,
    required_texts,
)

GOOGLE_FONTS_URL = "https://fonts.googleapis.com/css2"
MAX_SCALE_STEPS = 100
MAX_SCALE_NUMBER = 10_000.0


@dataclass
class CustomPropertyChanges:
    """Properties to be set, for light and for dark screens."""

    light: dict[str, str] = field(default_factory=dict)
    dark: dict[str, str] = field(default_factory=dict)

    def apply_to(self, document: HtmlDocument) -> HtmlDocument:
        css = "".join(_rule(selector, values) for selector, values in self._homes(document).items())
        if self.dark:
            css += "@media (prefers-color-scheme: dark) {\n" + _rule(":root", self.dark, "  ") + "}\n"
        return document.put_css(css)[0] if css else document

    def _homes(self, document: HtmlDocument) -> dict[str, dict[str, str]]:
        homes: dict[str, dict[str, str]] = {}
        for name, value in self.light.items():
            homes.setdefault(defining_selector(document, name), {})[name] = value
        return homes


def set_color_tokens(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    sheet, there, told, light_only = CustomPropertyChanges(), read_custom_properties(document), [], []
    for token in required_objects(given, "tokens"):
        slug = derivation.slugify(required_text(token, "slug"), "color")
        light, dark = _css_value(token, "lightValue"), _css_value(token, "darkValue") if token.get("darkValue") else ""
        action = "updated" if f"--{slug}" in there else "created"
        sheet.light |= _with_variants(slug, light, there)
        if dark and token.get("darkModeEnabled") is not False:
            sheet.dark |= _with_variants(slug, dark, there | sheet.light if action == "created" else there)
        elif token.get("darkModeEnabled") is False:
            light_only.append(f"--{slug}")
        told.append({"slug": slug, "ref": f"var(--{slug})", "action": action})
    return _light_only(sheet.apply_to(document), light_only), {"tokens": told}


def _with_variants(slug: str, value: str, there: dict[str, str]) -> dict[str, str]:
    """A new colour gets all its variants. One that is there keeps those it has, and without any, its notation."""
    color, name = derivation.parse_color(value), f"--{slug}"
    variants = {f"{name}-{variant}": str(shade) for variant, shade in color.variants()} if color else {}
    if name in there:
        variants = {variant: shade for variant, shade in variants.items() if variant in there}
        return {name: str(color) if variants else value, **variants}
    return {name: str(color) if color else value, **variants}


def _light_only(document: HtmlDocument, names: list[str]) -> HtmlDocument:
    """Without another value for dark screens."""
    dark = read_custom_properties(document, DARK_SCHEME_QUERY)
    gone = [name for name in dark for base in names if re.fullmatch(re.escape(base) + r"(-\d+|-[dl]-\d+)?", name)]
    if not gone:
        return document
    contents = [document.sheet_source(sheet) for sheet in document.writable_sheets]
    return document.with_sheet_contents(
        remove_properties(contents, [":root", "html"], gone, within=DARK_SCHEME_QUERY)[0]
    )


def set_font_tokens(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    sheet, there, told, families = CustomPropertyChanges(), read_custom_properties(document), [], []
    for token in required_objects(given, "tokens"):
        name = required_text(token, "name")
        variable = derivation.font_variable(optional_text(token, "variable") or name)
        if not variable:
            raise EditError(f"There is no CSS name in “{name}”. Send a `variable` of letters, such as font-heading.")
        family = _family(token)
        action = "updated" if f"--{variable}" in there else "created"
        fallback = optional_text(token, "fallback") or _fallback(there.get(f"--{variable}", ""))
        sheet.light[f"--{variable}"] = derivation.font_stack(family, fallback)
        told.append({"name": name, "variable": variable, "ref": f"var(--{variable})", "action": action})
        families += [(family, token)] if family else []
    document = sheet.apply_to(document)
    for family, token in families:
        document = _loading(document, family, token)
    note = "The page loads the font from fonts.googleapis.com when it is opened."
    return document, {"tokens": told, **({"note": note} if families else {})}


def _family(token: ToolArguments) -> str:
    family = optional_text(token, "googleFamily").strip()
    if not family and token.get("familyId"):
        raise EditError("No fonts are installed for a file. Send googleFamily, or a fallback of fonts everybody has.")
    if family and not re.fullmatch(r"[A-Za-z0-9 ]+", family):
        raise EditError(f"“{family}” is not the name of a Google font.")
    return family


def _fallback(stack: str) -> str:
    """The generic family at the end of a stack, so that a serif font is not followed by a sans-serif one."""
    last = stack.split(",")[-1].strip()
    return last if last in derivation.GENERIC_FONTS else ""


def _loading(document: HtmlDocument, family: str, token: ToolArguments) -> HtmlDocument:
    axes = _axes(required_texts(token, "variants")) if token.get("variants") else ""
    address = escape(f"{GOOGLE_FONTS_URL}?family={quote_plus(family)}{axes}&display=swap")
    if any(e.tag == "link" and e.attribute_value("href") == address for e in document.tree.elements):
        return document
    return document.with_head_element("link", [f'<link rel="stylesheet" href="{address}">'.encode()])


def _axes(variants: list[str]) -> str:
    """`["regular", "700italic"]` as the service wants it: `:ital,wght@0,400;1,700`."""
    found = {(int("italic" in one), int((re.search(r"\d+", one) or ["400"])[0])) for one in variants}
    if any(italic for italic, _ in found):
        return ":ital,wght@" + ";".join(f"{italic},{weight}" for italic, weight in sorted(found))
    return ":wght@" + ";".join(str(weight) for _, weight in sorted(found))


def set_type_scale(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    return _set_scale(document, given, "typography", DEFAULT_TYPE_SCALE, "fontSize")


def set_spacing_scale(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    return _set_scale(document, given, "spacing", DEFAULT_SPACING_SCALE, "size")


def _set_scale(
    document: HtmlDocument, given: ToolArguments, family: str, usual: TokenScale, size: str
) -> tuple[HtmlDocument, dict[str, Any]]:
    there = _group(document, given, family, usual)
    scale = _asked(given, _as_found(there, usual) if there.sizes else replace(usual, naming=there.naming), size)
    try:
        values = dict(scale.css_variables(root_font_pixels(document)))
    except (ArithmeticError, ValueError):
        raise EditError("These numbers make no scale. A ratio lies between 1 and 2 as a rule.") from None
    used = {
        "steps": ",".join(scale.steps),
        "baseScaleIndex": scale.base_index,
        "min": {size: scale.min_size, "scaleRatio": scale.min_ratio},
        "max": {size: scale.max_size, "scaleRatio": scale.max_ratio},
    }
    told = {
        "groupId": scale.naming,
        "action": "updated" if there.sizes else "created",
        "namingConvention": scale.naming,
    }
    return CustomPropertyChanges(values).apply_to(document), {**told, "generatedVars": list(values), "used": used}


def _group(document: HtmlDocument, given: ToolArguments, family: str, usual: TokenScale) -> PageScale:
    """The scale that is meant: the named one, else the only one or the first of this family, else a new one."""
    found = {steps.naming: steps for steps in find_scales(document) if steps.family == family}
    wanted = optional_text(given, "groupId")
    if wanted and wanted not in found:
        raise EditError(f"There is no {family} scale {wanted} here. There is: {', '.join(found) or 'none'}.")
    naming = optional_text(given, "namingConvention").strip().removeprefix("--")
    if naming and not re.fullmatch(r"[A-Za-z][\w{} -]*", naming):
        raise EditError("`namingConvention` is the beginning of a variable's name, such as text or space.")
    name = wanted or naming or next(iter(found), usual.naming)
    there = found.get(name, PageScale(family, name, {}))
    return there if not naming or naming == there.naming else PageScale(family, naming, {})


def _as_found(there: PageScale, usual: TokenScale) -> TokenScale:
    """The scale that the page's own numbers come from, as far as two neighbouring steps tell."""
    steps, sizes = tuple(there.sizes), list(there.sizes.values())
    base = min(steps.index("m") if "m" in steps else usual.base_index, len(steps) - 2)
    (least, most), (next_least, next_most) = sizes[base], sizes[base + 1]
    ratios = (next_least / least if least else 0, next_most / most if most else 0)
    if not all(ratios):
        return replace(usual, naming=there.naming, steps=steps)
    low, low_ratio, high, high_ratio = map(derivation.round_css_number, (least, ratios[0], most, ratios[1]))
    return TokenScale(there.naming, steps, base, low, low_ratio, high, high_ratio)


def _asked(given: ToolArguments, scale: TokenScale, size: str) -> TokenScale:
    steps = [step.strip() for step in optional_text(given, "steps").split(",") if step.strip()]
    if len(steps) > MAX_SCALE_STEPS or not all(re.fullmatch(r"[\w-]+", step) for step in steps):
        raise EditError("`steps` are names of letters and digits with commas between them, such as s,m,l.")
    low, high, base = (
        optional_object(given, "min"),
        optional_object(given, "max"),
        optional_integer(given, "baseScaleIndex"),
    )
    return TokenScale(
        scale.naming,
        tuple(steps) or scale.steps,
        scale.base_index if base is None else base,
        _positive(low, size, scale.min_size),
        _positive(low, "scaleRatio", scale.min_ratio),
        _positive(high, size, scale.max_size),
        _positive(high, "scaleRatio", scale.max_ratio),
    )


def _positive(given: ToolArguments, name: str, usual: float) -> float:
    value = optional_number(given, name)
    if value is not None and not 0 < value <= MAX_SCALE_NUMBER:
        raise EditError(f"`{name}` must be a number above 0.")
    return usual if value is None else value


def _css_value(token: ToolArguments, name: str) -> str:
    value = " ".join(required_text(token, name).split())
    if not value or re.search(r"[;{}<>\\]|/\*", value) or value.count("(") != value.count(")"):
        raise EditError(f"`{name}` must be one CSS colour, such as #2563eb or oklch(0.6 0.2 250), not “{value}”.")
    return value


def _rule(selector: str, values: dict[str, str], indent: str = "") -> str:
    lines = (f"{indent}  {name}: {value};" for name, value in values.items())
    return "\n".join([f"{indent}{selector} {{", *lines, f"{indent}}}", ""])
