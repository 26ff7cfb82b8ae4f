"""Name the models that the local cloud may be seeded with: the demo model, or a real one of Anthropic."""

import os
from collections.abc import Mapping

from fermata.drivers.registry import get_provider
from local.seed import SeededModel

DEFAULT_REAL_MODEL = "claude-sonnet-4-5"
DEMO_MODEL_LABEL = "Demo model (fixed rules, not an AI)"
REAL_MODEL_LABEL = "Anthropic"


def make_demo_model(url: str) -> SeededModel:
    return SeededModel(DEMO_MODEL_LABEL, "demo", "fermata-demo", url)


def make_real_model(api_key: str, urls: Mapping[str, str]) -> SeededModel:
    """Make the model that is asked with this key; `FERMATA_MODEL` in the environment names another one.

    Args:
        urls: Where providers are asked, if not at their own addresses.
    """
    url = urls.get("anthropic") or get_provider("anthropic").default_url or ""
    return SeededModel(REAL_MODEL_LABEL, api_key, os.environ.get("FERMATA_MODEL", DEFAULT_REAL_MODEL), url)
