"""What the model of a turn can do and hold, from what is known without asking its provider.

Doors that start turns hold no provider keys, so they ask nobody. What a credential's server said when its models were
last listed counts first, so that nobody is refused what the list promises, or promised what is refused:

    t#<tenant>   listed#<credential>   which models there are, and which of them see and call tools
"""

import json
import zlib
from collections.abc import Iterable
from typing import Any

from fermata.aws.dynamodb import Put
from fermata.aws.resources import Resources
from fermata.credentials.credential import Credential, model_list_sort_key
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.base import DomainModel
from fermata.domain.model_info import ModelInfo
from fermata.drivers.capabilities import get_usual_capabilities
from fermata.pricing import catalogue

CERTAIN_PROVIDERS = ("anthropic", "openai")
"""Of these, what their models usually can is what every one of them can."""
CATALOGUED_PROVIDERS = (*CERTAIN_PROVIDERS, catalogue.OPENROUTER_NAME)
"""Whose models the catalogue knows by the names they go by there."""
MAX_LISTED_CAPABILITIES_BYTES = 350_000
"""Of a list, packed: an item of DynamoDB holds 400 KB. OpenRouter's takes about 10."""


class KnownCapabilities(DomainModel):
    """None: nobody knows, and then the provider itself decides."""

    sees: bool | None = None
    calls_tools: bool | None = None
    window: int | None = None
    """Tokens of its context window."""


def get_known_capabilities(resources: Resources, provider: str, model: str) -> KnownCapabilities:
    known = catalogue.get_catalogue(resources) if provider in CATALOGUED_PROVIDERS else None
    listed = known.find_model(provider, model) if known else None
    usual = get_usual_capabilities(provider, model) if provider in CERTAIN_PROVIDERS else None
    sees, calls = (listed.sees, listed.calls) if listed else (None, None)
    return KnownCapabilities(
        sees=usual.vision_input if sees is None and usual else sees,
        calls_tools=usual.tool_calling if calls is None and usual else calls,
        window=listed.context_window if listed else None,
    )


def get_choice_capabilities(resources: Resources, tenant: str, choice: ModelChoice) -> KnownCapabilities:
    """The same, with what the credential's own server said of the model."""
    known = get_known_capabilities(resources, choice.provider, choice.model)
    told = _listed(resources, tenant, choice) if choice.provider not in CERTAIN_PROVIDERS else None
    return known.model_copy(update=told) if told else known


def store_listed_capabilities(resources: Resources, credential: Credential, models: Iterable[ModelInfo]) -> None:
    """What a server just said of its models; it replaces what it said before."""
    if credential.provider_id in CERTAIN_PROVIDERS:
        return
    listed = {model.id: [model.capabilities.vision_input, model.capabilities.tool_calling] for model in models}
    data = zlib.compress(json.dumps(listed, separators=(",", ":")).encode())
    if len(data) <= MAX_LISTED_CAPABILITIES_BYTES:
        item = {"pk": f"t#{credential.tenant}", "sk": model_list_sort_key(credential.id), "v": 1}
        resources.tables.write_items(
            Put(resources.settings.settings_table, item | {"version": credential.version, "data": data})
        )


def _listed(resources: Resources, tenant: str, chosen: ModelChoice) -> dict[str, Any] | None:
    """Of another version of the credential nothing counts: that may have been another server."""
    item = resources.tables.get_item(
        resources.settings.settings_table, f"t#{tenant}", model_list_sort_key(chosen.credential_id)
    )
    if item is None or item["version"] != chosen.version:
        return None
    told = json.loads(zlib.decompress(bytes(item["data"]))).get(chosen.model)
    return {"sees": told[0], "calls_tools": told[1]} if told else None
