"""Derive the name and the font stack of a font's CSS variable.

The service derives the same from a token. A test compares the two, which share no code (decision 0123).
"""

import re

GENERIC_FONTS = ("serif", "sans-serif", "monospace", "cursive", "fantasy", "system-ui", "ui-serif", "ui-sans-serif")
DEFAULT_FALLBACK = "sans-serif"


def slugify(name: str, default: str = "") -> str:
    """Return the name in lower-case letters, digits and hyphens; `default` if nothing is left of it."""
    return re.sub(r"[^a-z0-9]+", "-", name.strip().lower()).strip("-") or default


def font_variable(name: str) -> str:
    """Return the variable's name without `--`; empty if the name has no letters or digits."""
    slug = slugify(name)
    return slug if not slug or slug.startswith("font-") else f"font-{slug}"


def font_stack(family: str, fallback: str) -> str:
    """Return a font family, if any, and its fallbacks, as the value of `font-family`."""
    names = (re.sub(r'["\\\n\r<>;{}]', "", name.strip()) for name in fallback.split(","))
    fallbacks = ", ".join(name for name in names if name) or DEFAULT_FALLBACK
    safe_family = re.sub(r'["\\\n\r<>]', "", family)
    return f'"{safe_family}", {fallbacks}' if family else fallbacks
