"""Translate the terms of a vocabulary in the texts of an entry, and mark the texts as not translated otherwise."""

import re
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*|https?://\S+|\d{4}-\d{2}-\d{2}.*|asset:.*|\+?[\d ()-]+|\S+@\S+")
"""What is no sentence: ids, addresses, dates, numbers."""


def translate_fields(fields: Mapping[str, Any], terms: Mapping[str, Any], source: str, target: str) -> dict[str, Any]:
    """Return fields in another language. What is no text of people stays as it is.

    Args:
        fields: The entry in its language.
        terms: Texts of terms by language.
        source: The language of the entry.
        target: The language that is wanted.
    """
    pairs = {
        str(texts[source]).lower(): str(texts[target])
        for texts in terms.values()
        if isinstance(texts, dict) and texts.get(source) and texts.get(target)
    }
    return {name: _translate_text(value, pairs, target) for name, value in fields.items()}


def _translate_text(value: Any, pairs: Mapping[str, str], target: str) -> Any:
    if not isinstance(value, str) or not value.strip() or _NAME.fullmatch(value):
        return value
    if not pairs:
        return f"[{target}] {value}"
    pattern = re.compile(rf"\b(?:{'|'.join(re.escape(term) for term in sorted(pairs, key=len, reverse=True))})\b", re.I)
    return f"[{target}] " + pattern.sub(lambda found: pairs[found[0].lower()], value)
