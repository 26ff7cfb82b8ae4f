"""Find the style sheets that a sheet imports from other sites."""

import re

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_IMPORT = re.compile(r"""@import\s*+(?:url\(\s*+)?["']?\s*+([^"')\s;]+)""", re.IGNORECASE)
_FOREIGN = re.compile(r"(?:[a-z][a-z0-9+.-]*:|[/\\]{2})", re.IGNORECASE)


def foreign_imports(sheet: bytes) -> list[str]:
    """Return the addresses of imports that name another site."""
    text = _COMMENT.sub("", sheet.decode("utf-8", "replace"))
    return [address for address in _IMPORT.findall(text) if _FOREIGN.match(address)]
