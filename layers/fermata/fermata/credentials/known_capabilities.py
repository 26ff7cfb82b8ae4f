"""Look up what a model can do and hold without asking its provider (decisions 0044 and 0087).

The Lambda handlers that start turns have no permission to read API keys, so they ask no provider. What a credential's
server said when its models were last listed counts first, so that a turn is refused or let through as the list says.
It is stored beside the credential:

    t#<tenant>   listed#<credential>   the models, and which of them read images and call tools
"""

import json
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fermata.aws.resources import Resources
from fermata.credentials.credential import Credential, model_list_sort_key
from fermata.domain.base import DomainModel
from fermata.domain.model_info import ModelInfo
from fermata.drivers.registry import get_model_traits
from fermata.pricing import catalogue

if TYPE_CHECKING:
    from fermata.credentials.model_choice import ModelChoice

MAX_LISTED_CAPABILITIES_BYTES = 350_000
"""Compressed. An item of DynamoDB holds 400 KB; OpenRouter's list takes about 10."""


class KnownCapabilities(DomainModel, defer_build=False):
    """What is known of one model. None means unknown: then the provider decides.

    Attributes:
        context_window: In tokens.
    """

    vision_input: bool | None = None
    tool_calling: bool | None = None
    context_window: int | None = None


def get_known_capabilities(resources: Resources, provider: str, model: str) -> KnownCapabilities:
    """Return what the price catalogue knows of a model, or else what holds for every model of its provider.

    Args:
        provider: The `providerId` of the credential.
        model: The provider's name of the model.

    Returns:
        The capabilities, each None where it is unknown. The context window is in tokens.
    """
    traits = get_model_traits(provider)
    prices = catalogue.get_catalogue(resources) if traits.are_in_catalogue else None
    listed = prices.find_model(provider, model) if prices else None
    usual = traits.get_capabilities(model) if traits.are_first_party else None
    vision_input = listed.can_read_images if listed else None
    tool_calling = listed.can_call_tools if listed else None
    return KnownCapabilities(
        vision_input=usual.vision_input if vision_input is None and usual else vision_input,
        tool_calling=usual.tool_calling if tool_calling is None and usual else tool_calling,
        context_window=listed.context_window if listed else None,
    )


def get_choice_capabilities(resources: Resources, tenant: str, choice: "ModelChoice") -> KnownCapabilities:
    """Return what is known of a chosen model. What its credential's own server said comes first.

    It costs one read of the settings table, unless the provider makes its models itself.

    Args:
        tenant: The tenant that owns the credential.
        choice: The credential and the model.
    """
    known = get_known_capabilities(resources, choice.provider, choice.model)
    if get_model_traits(choice.provider).are_first_party:
        return known
    return known.model_copy(update=_read_listed(resources, tenant, choice))


def store_listed_capabilities(resources: Resources, credential: Credential, models: Iterable[ModelInfo]) -> None:
    """Store what a server just said of its models, in place of what it said before."""
    if get_model_traits(credential.provider_id).are_first_party:
        return
    listed = {model.id: [model.capabilities.vision_input, model.capabilities.tool_calling] for model in models}
    data = zlib.compress(json.dumps(listed, separators=(",", ":")).encode())
    if len(data) <= MAX_LISTED_CAPABILITIES_BYTES:
        item = {"pk": f"t#{credential.tenant}", "sk": model_list_sort_key(credential.id), "v": 1}
        item |= {"version": credential.version, "listed_at": resources.clock.now_iso(), "data": data}
        resources.tables.put_newest(resources.settings.settings_table, item, "listed_at")


def _read_listed(resources: Resources, tenant: str, choice: "ModelChoice") -> dict[str, Any]:
    """Return the stored fields of `KnownCapabilities`; none if they are of another version of the credential.

    Another version may have been another server.
    """
    item = resources.tables.get_item(
        resources.settings.settings_table, f"t#{tenant}", model_list_sort_key(choice.credential_id)
    )
    if item is None or item["version"] != choice.version:
        return {}
    listed = json.loads(zlib.decompress(bytes(item["data"]))).get(choice.model)
    return {"vision_input": listed[0], "tool_calling": listed[1]} if listed else {}
