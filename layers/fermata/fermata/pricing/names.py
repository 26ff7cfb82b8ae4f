"""A model has one name in the price table, however its provider, a gateway or a release date spells it."""

import re

PREFIXES = ("anthropic/", "openai/", "openrouter/")
DATES = (re.compile(r"-\d{4}-\d{2}-\d{2}\Z"), re.compile(r"-\d{8}\Z"))


def exact_name(model: str) -> str:
    """Lower case, without one leading provider, dots as dashes. A release date stays."""
    return _bare(model).replace(".", "-")


def pricing_key(model: str) -> str:
    """The exact name without the release date at its end (contract instatic.md §5.13)."""
    name = _bare(model)
    for date in DATES:
        name = date.sub("", name)
    return name.replace(".", "-")


def _bare(model: str) -> str:
    name = model.lower()
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name
