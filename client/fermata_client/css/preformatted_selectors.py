"""Find the elements whose white space is shown because a rule says so."""

import re
from collections.abc import Iterable

from fermata_client.css.parser import parse_css

PRESERVING_VALUES = ("pre", "break-spaces", "preserve")
WHITE_SPACE_PROPERTIES = ("white-space", "white-space-collapse")

_LAST_COMPOUND = re.compile(r"(?<![^\s>+~])[^\s>+~]*+\Z")
_CLASS_OR_TAG = re.compile(r"\.[\w-]+|^[A-Za-z][\w-]*")


def find_preformatted_selectors(sheets: Iterable[bytes]) -> frozenset[str]:
    """Return the classes (`.code`) and tags (`code`) of elements that such rules may select."""
    selectors: set[str] = set()
    for sheet in sheets:
        if b"white-space" not in sheet:
            continue
        for rule in parse_css(sheet):
            for inner in (rule, *rule.iter_descendants()):
                if any(
                    declaration.name in WHITE_SPACE_PROPERTIES and declaration.value.startswith(PRESERVING_VALUES)
                    for declaration in inner.declarations
                ):
                    selectors |= _selected_names(inner.key)
    return frozenset(selectors)


def _selected_names(key: str) -> set[str]:
    names: set[str] = set()
    for selector in key.split(","):
        last = _LAST_COMPOUND.search(selector.strip())
        names.update(_CLASS_OR_TAG.findall(last[0]) if last else ())
    return names
