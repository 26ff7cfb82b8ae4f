"""Normalize model names, which providers, gateways and release dates spell differently."""

import re

PROVIDER_PREFIXES = ("anthropic/", "openai/", "openrouter/")
RELEASE_DATE_PATTERNS = (re.compile(r"-\d{4}-\d{2}-\d{2}\Z"), re.compile(r"-\d{8}\Z"))


def normalize_model_name(model: str) -> str:
    """Return the name in lower case, without one leading provider, with dots as dashes. A release date stays."""
    return _strip_provider(model).replace(".", "-")


def undated_model_name(model: str) -> str:
    """Return the normalized name without the release date at its end (decision 0040)."""
    name = _strip_provider(model)
    for pattern in RELEASE_DATE_PATTERNS:
        name = pattern.sub("", name)
    return name.replace(".", "-")


def _strip_provider(model: str) -> str:
    name = model.lower()
    for prefix in PROVIDER_PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name
