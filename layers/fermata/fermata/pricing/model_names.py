"""A model has one name in the price table, however its provider, a gateway or a release date spells it."""

import re

PROVIDER_PREFIXES = ("anthropic/", "openai/", "openrouter/")
RELEASE_DATE_PATTERNS = (re.compile(r"-\d{4}-\d{2}-\d{2}\Z"), re.compile(r"-\d{8}\Z"))


def normalize_model_name(model: str) -> str:
    """Lower case, without one leading provider, dots as dashes. A release date stays."""
    return _strip_provider(model).replace(".", "-")


def undated_model_name(model: str) -> str:
    """The exact name without the release date at its end (contract instatic.md §5.13)."""
    name = _strip_provider(model)
    for date in RELEASE_DATE_PATTERNS:
        name = date.sub("", name)
    return name.replace(".", "-")


def _strip_provider(model: str) -> str:
    name = model.lower()
    for prefix in PROVIDER_PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name
