"""Compute font tokens: the CSS variable, the installed family that is bound to it, and the font stack."""

import re
from typing import Any

from fermata.tools.lenient_models import FiniteNumber, LenientModel


class InstalledFont(LenientModel):
    id: str
    family: str


class FontToken(LenientModel):
    name: str = ""
    variable: str
    fallback: str = ""
    family_id: str = ""
    order: FiniteNumber = 0


class FontSettings(LenientModel):
    items: tuple[InstalledFont, ...] = ()
    tokens: tuple[FontToken, ...] = ()


def describe_fonts(settings: FontSettings) -> list[dict[str, Any]]:
    """Describe the site's font tokens in their order."""
    families = {font.id: font.family for font in settings.items}
    tokens = sorted(settings.tokens, key=lambda token: (token.order, token.name))
    return [_describe_token(token, families.get(token.family_id, "")) for token in tokens]


def _describe_token(token: FontToken, family: str) -> dict[str, Any]:
    variable = to_font_variable(token.variable)
    css_var = f"--{variable}" if variable else ""
    return {
        "name": token.name,
        "cssVar": css_var,
        "ref": f"var({css_var})" if css_var else "",
        "family": family,
        "stack": _build_stack(family, token.fallback),
    }


def to_font_variable(name: str) -> str:
    """Make the name of a font variable: `font-body-copy` from `--Body Copy`."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.strip().lower()).strip("-")
    return slug if not slug or slug.startswith("font-") else f"font-{slug}"


def _build_stack(family: str, fallback: str) -> str:
    parts = (re.sub(r'["\\\n\r<>;{}]', "", part.strip()) for part in fallback.split(","))
    rest = ", ".join(part for part in parts if part) or "sans-serif"
    quoted = re.sub(r'["\\\n\r<>]', "", family)
    return f'"{quoted}", {rest}' if family else rest
